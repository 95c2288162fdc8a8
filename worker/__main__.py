"""`python -m worker`: the worker process, from its start to its orderly end."""

import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial

from app import bell, liveness, log, metrics
from app.bell import Bell
from app.clock import utcnow
from app.errors import AppError
from app.job import State, Step
from app.liveness import Presence
from app.migrate import open_database
from app.process import stop_signals
from app.queue.port import Queue
from app.queue.replies import Replies
from app.queue.sqlite import SqliteQueue
from app.settings import Settings, SettingsError, load
from app.storage.local import LocalStorage
from worker.housekeeping import empty_bin, settle_replies
from worker.loop import Lane, Limits, Loop
from worker.recognizers.embedded import EmbeddedRecognizer
from worker.recognizers.port import Recognizer
from worker.steps.check import CheckStep
from worker.steps.convert import ConvertStep
from worker.steps.recognize import RecognizeStep

logger = logging.getLogger(__name__)

EXIT_BAD_SETTINGS = 78
_SWEEP_SECONDS = 60.0
_BIN_SECONDS = 3600.0
_LOOK_SECONDS = 1.0
_LOST_SECONDS = 1.0
"""However long the poll: a killed worker's job is free within two seconds (P41)."""
_ALARM_GRACE_SECONDS = 1.0
_CONVERT_ROOM_BYTES = 16 * 1024**2
"""Eight minutes of converted sound. On a fuller disk a job would only spend its attempts, and so
would each that waits behind it, within half a minute each."""


def main() -> int:
    """Run the worker until SIGTERM or SIGINT; gives the exit code."""
    try:
        settings = load()
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_BAD_SETTINGS
    log.setup(settings.log, "worker")
    data_dir = settings.storage.data_dir
    try:
        database = open_database(data_dir, utcnow())
    except AppError as error:
        logger.critical("%s", error.message, extra={"code": error.code})
        return EXIT_BAD_SETTINGS if error.code == "database_newer" else 1
    presence = Presence(data_dir, liveness.WORKER)
    # Before the first look for work: what is accepted after it rings.
    own_bell = Bell(data_dir, presence.name)
    recognizer = EmbeddedRecognizer(settings)
    try:
        # Its own lanes tell each other.
        ring_others = partial(bell.ring, data_dir, presence.name)
        queue = SqliteQueue(database, settings.longest_pause_seconds, on_ready=ring_others)
        storage = LocalStorage(data_dir, presence.scratch)
        loop = _loop(settings, queue, storage, presence)
        metrics.serve(settings.worker.metrics_port, "worker.metrics_port")
        lanes = _lanes(settings, storage, recognizer)
        replies = Replies(database, presence.name)
        _run(settings, loop, lanes, queue, storage, replies, own_bell)
    finally:
        recognizer.close()
        own_bell.close()
        presence.close()
        database.close()
    return 0


def _loop(settings: Settings, queue: Queue, storage: LocalStorage, presence: Presence) -> Loop:
    return Loop(
        queue=queue,
        storage=storage,
        worker=presence.name,
        scratch=presence.scratch,
        limits=Limits(settings.worker.max_attempts, settings.worker.retry_cap),
        now=utcnow,
        poll_seconds=settings.worker.poll_interval,
    )


def _lanes(settings: Settings, storage: LocalStorage, recognizer: Recognizer) -> Sequence[Lane]:
    slots = settings.worker
    convert = Lane(
        State.CREATED,
        Step.CONVERT,
        ConvertStep(settings, storage),
        slots.convert_lease,
        _CONVERT_ROOM_BYTES,
    )
    recognize = Lane(
        State.CONVERTED,
        Step.RECOGNIZE,
        RecognizeStep(settings, storage, recognizer),
        slots.recognize_lease,
    )
    check = Lane(
        State.TRANSCRIBE,
        Step.CHECK,
        CheckStep(settings, storage, recognizer),
        recognizer.lease_seconds,
    )
    return (
        [convert] * slots.convert_slots
        + [recognize] * slots.recognize_slots
        + [check] * slots.check_slots
    )


def _run(
    settings: Settings,
    loop: Loop,
    lanes: Sequence[Lane],
    queue: Queue,
    storage: LocalStorage,
    replies: Replies,
    own_bell: Bell,
) -> None:
    """Start the lanes, wait for a signal, and end within the two timeouts (P44)."""
    signals = stop_signals()
    has_looked = threading.Event()
    # The lanes start the children, and a child is told to end with the thread that started it.
    threads = [
        threading.Thread(target=_serve, args=(loop, lane, has_looked), name=f"{lane.step}-{slot}")
        for slot, lane in enumerate(lanes)
    ]
    # In threads too: this one must hear the signal while the store keeps a writer waiting.
    threads.append(
        threading.Thread(target=loop.watch, args=(own_bell,), name="watch"),
    )
    threads.append(
        threading.Thread(
            target=_clear_up, args=(settings, queue, replies, loop, has_looked), name="clear-up"
        )
    )
    threads.append(
        threading.Thread(target=_empty_bin, args=(settings, queue, storage, loop), name="bin")
    )
    try:
        for thread in threads:
            thread.start()
        logger.info("the worker is ready", extra={"slots": len(lanes)})
        while not select.select([signals], [], [], _LOOK_SECONDS)[0]:
            if not all(thread.is_alive() for thread in threads):
                # The other steps would go on and this one never: a new process does all.
                raise RuntimeError("a thread of the worker has ended")
    finally:
        loop.draining.set()
        has_looked.set()
        _stop(settings, loop, threads, own_bell)


def _serve(loop: Loop, lane: Lane, has_looked: threading.Event) -> None:
    # What a killed worker held goes first: begun at once, a lane would take the job behind it.
    has_looked.wait()
    loop.serve(lane)


def _clear_up(
    settings: Settings, queue: Queue, replies: Replies, loop: Loop, has_looked: threading.Event
) -> None:
    """Free what ended processes hold and left behind, again and again until draining.

    has_looked is set once the claims of ended workers were looked at, whatever came of it.
    """
    data_dir, swept_at = settings.storage.data_dir, float("-inf")
    while not loop.draining.is_set():
        try:
            try:
                _release_lost(settings, queue, loop)
            finally:
                has_looked.set()
            settle_replies(replies, data_dir, settings.telegram.delivery_wait, utcnow())
            if time.monotonic() - swept_at >= _SWEEP_SECONDS:
                swept_at = time.monotonic()
                liveness.sweep(data_dir)
        except Exception:
            logger.exception("what ended processes left cannot be looked at")
        loop.draining.wait(min(settings.worker.poll_interval, _LOST_SECONDS))


def _empty_bin(settings: Settings, queue: Queue, storage: LocalStorage, loop: Loop) -> None:
    """Remove what has lain in the bin long enough, once an hour until draining.

    In a thread of its own: a full bin would keep the claims of a killed worker waiting.
    """
    bin_seconds = settings.retention.bin_seconds
    while not loop.draining.is_set():
        try:
            while empty_bin(queue, storage, bin_seconds, utcnow()) and not loop.draining.is_set():
                pass
        except Exception:
            logger.exception("the bin cannot be emptied")
        loop.draining.wait(_BIN_SECONDS)


def _release_lost(settings: Settings, queue: Queue, loop: Loop) -> None:
    """Free the claims of workers proven gone (P41)."""
    data_dir = settings.storage.data_dir
    lost = queue.release_lost(
        # Itself it never takes for gone, though somebody may have cleared data/run.
        lambda name: name != loop.worker and liveness.is_gone(data_dir, name),
        utcnow(),
    )
    for job in lost:
        metrics.claims_released.labels("worker_gone").inc()
        logger.warning(
            "its worker is gone, the job is ready again",
            extra={"job_id": job.id, "step": job.step, "attempt": job.attempts},
        )
    if lost:
        loop.wake()


def _stop(
    settings: Settings, loop: Loop, threads: Sequence[threading.Thread], own_bell: Bell
) -> None:
    begun = time.monotonic()
    # The kernel's own end, should what follows wait for ever: closing the store takes the writer
    # lock, which a stopped process may be holding.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(
        signal.ITIMER_REAL, settings.server.force_shutdown_timeout + _ALARM_GRACE_SECONDS
    )
    loop.draining.set()
    loop.wake()
    own_bell.strike()
    _join(threads, begun + settings.server.shutdown_timeout)
    loop.stopping.set()
    _join(threads, begun + settings.server.force_shutdown_timeout)
    if any(thread.is_alive() for thread in threads):
        # The claims stay, and are released as soon as this process is gone.
        logger.error("a step did not end in time; leaving without it")
        logging.shutdown()
        os._exit(1)
    logger.info("the worker has stopped")


def _join(threads: Sequence[threading.Thread], deadline: float) -> None:
    for thread in threads:
        if thread.ident is not None:  # one that was never started cannot be joined
            thread.join(max(deadline - time.monotonic(), 0))


if __name__ == "__main__":
    sys.exit(main())
