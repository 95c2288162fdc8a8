"""Claim, step, record: the one place for attempts, pauses, verdicts and `dead` (P14).

One lane is one slot of one step: a thread that claims jobs of its state one after another.
"""

import errno
import logging
import shutil
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Protocol

from app import metrics
from app.bell import Bell
from app.errors import AppError
from app.job import ACTIVE, State, Step, backoff_seconds
from app.queue.port import Buried, Claim, Converted, Nothing, Queue, Recognized, StepResult
from app.storage.port import Storage
from worker.hold import Hold
from worker.work import Snooze, Stopped, Work

log = logging.getLogger(__name__)

_FAULT_PAUSE_SECONDS = 1.0
"""The pause after the store itself failed (a full disk, say), before the lane tries again."""

_HUSH_SECONDS = 0.01
"""After a ring the next one is heard this much later, so that a storm of them costs little."""


class Run(Enum):
    """What one turn of a lane came to."""

    IDLE = "idle"
    WORKED = "worked"
    FAILED = "failed"
    LOST = "lost"
    RELEASED = "released"
    BURIED = "buried"


class StepRunner(Protocol):
    """A step of the pipeline: does the work of one claimed job.

    A failure is raised: AppError with its own judgement whether it is permanent, anything else
    counts as one to be tried again. Stopped says that the step obeyed work.stopped().
    """

    def run(self, work: Work) -> StepResult | Snooze:
        """The step's result, or when to call again."""


@dataclass(frozen=True)
class Lane:
    """One slot: the state it claims, its step, and how long its claims are honoured.

    With less free disk than room_bytes it claims nothing.
    """

    state: State
    step: Step
    runner: StepRunner
    lease_seconds: float
    room_bytes: int = 0


@dataclass(frozen=True)
class Limits:
    """The attempts limit and the cap of the growing pause (P14, P20)."""

    max_attempts: int
    retry_cap_seconds: float


class _Rest:
    """Where the lanes of one state wait to be woken."""

    def __init__(self) -> None:
        self._woken = threading.Condition()
        self.calls = 0

    def wake(self) -> None:
        with self._woken:
            self.calls += 1
            self._woken.notify_all()

    def wait(self, seen: int) -> None:
        """Wait until there were more calls than those seen."""
        with self._woken:
            self._woken.wait_for(lambda: self.calls != seen)


class Loop:
    """Runs lanes over one queue.

    worker is this process's name (app.liveness), scratch its own directory. draining means: no
    new claims; stopping means: running steps must end now and give their claims back (P44).
    """

    def __init__(
        self,
        *,
        queue: Queue,
        storage: Storage,
        worker: str,
        scratch: Path,
        limits: Limits,
        now: Callable[[], datetime],
        poll_seconds: float,
    ) -> None:
        self._queue = queue
        self._storage = storage
        self.worker = worker
        self._scratch = scratch
        self._limits = limits
        self._now = now
        self._poll_seconds = poll_seconds
        self._rests = {state: _Rest() for state in ACTIVE}
        self._rings = 0
        self._had_room = True
        self.draining = threading.Event()
        self.stopping = threading.Event()

    def serve(self, lane: Lane) -> None:
        """Work until draining, turn after turn, resting only when there was nothing to do."""
        rest = self._rests[lane.state]
        while not self.draining.is_set():
            seen = rest.calls
            try:
                run = self.turn(lane)
            except Exception:
                log.exception("the store failed; trying again", extra={"step": lane.step})
                self.draining.wait(_FAULT_PAUSE_SECONDS)
                continue
            if run is Run.IDLE:
                rest.wait(seen)
            else:
                self.wake()

    def watch(self, bell: Bell) -> None:
        """Until draining, at each ring and each poll, wake the lanes whose state has jobs (P40).

        One look for all: a poll of each lane cost a waiting worker three times the CPU, and at a
        ring the others were in the way of the one that had something to do.
        """
        was_rung = False
        while not self.draining.is_set():
            try:
                for state, jobs in self._queue.counts().items():
                    if jobs and state in self._rests:
                        self._rests[state].wake()
            except Exception:
                log.exception("the store cannot be looked at")
            if was_rung:
                self.draining.wait(_HUSH_SECONDS)
            was_rung = bell.wait(self._poll_seconds)
            self._rings += was_rung

    def wake(self) -> None:
        """End the rest of every lane."""
        for rest in self._rests.values():
            rest.wake()

    def turn(self, lane: Lane) -> Run:
        """Claim one job of the lane's state and work on it."""
        if not self._has_room(lane):
            return Run.IDLE
        claimed = self._queue.claim(
            lane.state,
            worker=self.worker,
            lease_seconds=lane.lease_seconds,
            max_attempts=self._limits.max_attempts,
            now=self._now(),
        )
        if isinstance(claimed, Nothing):
            return Run.IDLE
        if isinstance(claimed, Buried):
            job = claimed.job
            log.error(
                "attempts spent, the job is dead",
                extra={"job_id": job.id, "step": lane.step, "code": job.error_code},
            )
            return Run.BURIED
        return self._work(lane, claimed)

    def _has_room(self, lane: Lane) -> bool:
        """False while the disk is too full for the step: its jobs wait, and no attempt is spent."""
        if not lane.room_bytes:
            return True
        has_room = shutil.disk_usage(self._scratch).free >= lane.room_bytes
        if self._had_room and not has_room:
            log.warning("the disk is full, its jobs wait for room", extra={"step": lane.step})
        self._had_room = has_room
        return has_room

    def _work(self, lane: Lane, claim: Claim) -> Run:
        if claim.job.error_code == "lease_ended":
            metrics.claims_released.labels("lease_ended").inc()
            log.warning("taken over: its lease had ended", extra=_facts(claim))
        hold = Hold(self._queue, claim, self.stopping, self._now, lambda: self._rings)
        folder = self._scratch / f"step-{claim.job.id}-{claim.job.attempts}"
        started = time.monotonic()
        try:
            folder.mkdir()
            result = lane.runner.run(self._hand_over(claim, hold, folder))
        except Stopped:
            return self._give_back(claim, hold)
        except AppError as error:
            return self._record_failure(claim, error)
        except Exception as error:
            return self._record_failure(claim, _internal(error))
        finally:
            metrics.step_seconds.labels(lane.step).observe(time.monotonic() - started)
            shutil.rmtree(folder, ignore_errors=True)
        return self._record_result(claim, result)

    def _hand_over(self, claim: Claim, hold: Hold, folder: Path) -> Work:
        job = claim.job
        return Work(
            job=job,
            file=self._queue.file(job.file),
            folder=folder,
            report=hold.report,
            keep=hold.keep,
            pieces=lambda engine: self._queue.pieces(job.id, engine),
            intend=hold.intend,
            stopped=hold.stopped,
        )

    def _record_result(self, claim: Claim, result: StepResult | Snooze) -> Run:
        now = self._now
        if isinstance(result, Snooze):
            delay = result.delay_seconds
            held = self._persist(lambda: self._queue.snooze(claim, delay, now()))
        else:
            held = self._persist(lambda: self._queue.finish(claim, result, now()))
        if not held:
            if isinstance(result, Converted):
                self._storage.delete(result.file)
            return self._lost(claim)
        if isinstance(result, Recognized):
            metrics.audio_seconds.inc(claim.job.duration_seconds or 0)
        metrics.worker_runs.labels(claim.step, "success").inc()
        if not isinstance(result, Snooze):
            log.info("step done", extra=_facts(claim))
        return Run.WORKED

    def _record_failure(self, claim: Claim, error: AppError) -> Run:
        facts = _facts(claim) | {"code": error.code, "detail": error.detail or None}
        if error.permanent:
            held = self._persist(lambda: self._queue.fail(claim, error, self._now()))
        else:
            pause = backoff_seconds(claim.job.attempts, self._limits.retry_cap_seconds)
            held = self._persist(lambda: self._queue.retry(claim, error, pause, self._now()))
            facts["pause_seconds"] = pause
        if not held:
            return self._lost(claim)
        metrics.worker_runs.labels(claim.step, "failure").inc()
        if error.permanent:
            log.error("step failed for good: %s", error.message, extra=facts)
        else:
            log.warning("step failed, will be tried again: %s", error.message, extra=facts)
        return Run.FAILED

    def _give_back(self, claim: Claim, hold: Hold) -> Run:
        if hold.is_lost or not self._persist(lambda: self._queue.release(claim, self._now())):
            return self._lost(claim)
        metrics.claims_released.labels("shutdown").inc()
        log.info("given back, the worker stops", extra=_facts(claim))
        return Run.RELEASED

    def _lost(self, claim: Claim) -> Run:
        metrics.claims_lost.labels(claim.step).inc()
        log.info("the claim was lost, nothing is written", extra=_facts(claim))
        return Run.LOST

    def _persist(self, write: Callable[[], bool]) -> bool:
        """Write an outcome, trying until the store takes it.

        A live worker keeps its claim for hours, so an outcome that a full disk refuses must
        not be dropped: the job would stand still until the lease ends.
        """
        while True:
            try:
                return write()
            except Exception:
                if self.stopping.is_set():
                    raise
                log.exception("the outcome of a step cannot be written; trying again")
                self.stopping.wait(_FAULT_PAUSE_SECONDS)


def _internal(error: Exception) -> AppError:
    """An unforeseen failure by its kind and place: its message may hold a path or a name."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return AppError("disk_full", f"in {place.name}, line {place.lineno}")
    return AppError("internal", f"{type(error).__name__} in {place.name}, line {place.lineno}")


def _facts(claim: Claim) -> dict[str, object]:
    return {"job_id": claim.job.id, "step": claim.step, "attempt": claim.job.attempts}
