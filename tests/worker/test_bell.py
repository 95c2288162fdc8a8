"""A waiting worker: it rests, and is woken by the bell, by its own lanes and by the poll (P40)."""

import logging
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bell import Bell, ring
from app.clock import utcnow
from app.db import Database
from app.job import State, Step
from app.liveness import WORKER, Presence
from app.queue.port import StepResult
from app.queue.sqlite import SqliteQueue
from app.storage.local import LocalStorage
from tests.processes import wait_until
from tests.queue.hands import converted, hand_in, held, recognized, to_state
from tests.service.house import Service, service
from tests.worker.test_process import until_ready, worker
from worker.hold import Hold
from worker.loop import Lane, Limits, Loop, Run
from worker.work import Work

AN_HOUR = 3600.0
LONGEST_POLL = "60"
SOON = 10.0
"""Seconds: much less than the longest poll, much more than a busy machine needs."""


class Resting:
    """A loop whose lanes rest, with its bell; what they do is written down."""

    def __init__(self, data_dir: Path, database: Database, poll_seconds: float) -> None:
        self.presence = Presence(data_dir, WORKER)
        self.bell = Bell(data_dir, self.presence.name)
        self.queue = SqliteQueue(database)
        self.done: list[Step] = []
        self.loop = Loop(
            queue=self.queue,
            storage=LocalStorage(data_dir, self.presence.scratch),
            worker=self.presence.name,
            scratch=self.presence.scratch,
            limits=Limits(max_attempts=5, retry_cap_seconds=300),
            now=utcnow,
            poll_seconds=poll_seconds,
        )
        self.turns: list[State] = []
        self._last: dict[State, Run] = {}
        turn = self.loop.turn

        def counted(lane: Lane) -> Run:
            self.turns.append(lane.state)
            self._last.pop(lane.state, None)
            run = self._last[lane.state] = turn(lane)
            return run

        self.loop.turn = counted  # type: ignore[method-assign]
        self.lanes = [
            Lane(State.CREATED, Step.CONVERT, _Doing(self, Step.CONVERT), AN_HOUR),
            Lane(State.TRANSCRIBE, Step.CHECK, _Doing(self, Step.CHECK), AN_HOUR),
        ]
        self._threads = [
            threading.Thread(target=self.loop.serve, args=(lane,)) for lane in self.lanes
        ] + [threading.Thread(target=self.loop.watch, args=(self.bell,))]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        wait_until(self.is_at_rest, SOON, "all lanes rest")

    def is_at_rest(self) -> bool:
        return all(self._last.get(lane.state) is Run.IDLE for lane in self.lanes)

    def close(self) -> None:
        self.loop.draining.set()
        self.loop.wake()
        self.bell.strike()
        for thread in self._threads:
            if thread.ident:
                thread.join(SOON)
                assert not thread.is_alive()
        self.bell.close()
        self.presence.close()


class _Doing:
    def __init__(self, resting: Resting, step: Step) -> None:
        self._resting = resting
        self._step = step

    def run(self, work: Work) -> StepResult:
        self._resting.done.append(self._step)
        return converted() if self._step is Step.CONVERT else recognized()


@pytest.fixture
def resting(data_dir: Path, database: Database) -> Iterator[Resting]:
    found = Resting(data_dir, database, AN_HOUR)
    yield found
    found.close()


@pytest.fixture
def polling(data_dir: Path, database: Database) -> Iterator[Resting]:
    found = Resting(data_dir, database, 0.05)
    yield found
    found.close()


def test_p40_a_ring_ends_the_rest_of_the_lane_that_has_work_and_of_no_other(
    data_dir: Path, resting: Resting
) -> None:
    resting.start()
    before = resting.turns.count(State.TRANSCRIBE)
    # Told of by nobody else: the queue of these tests has no bell.
    hand_in(resting.queue)
    wait_until(lambda: resting.queue.counts()[State.CREATED] == 1, SOON)
    ring(data_dir)
    wait_until(lambda: resting.done == [Step.CONVERT], SOON, "the job was converted")
    wait_until(resting.is_at_rest, SOON, "all lanes rest again")
    # Once it may have been told by the lane that moved the job, as ever.
    assert resting.turns.count(State.TRANSCRIBE) <= before + 1


def test_p40_a_ring_without_work_wakes_no_lane(data_dir: Path, resting: Resting) -> None:
    resting.start()
    before = len(resting.turns)
    looks = _count_looks(resting)
    ring(data_dir)
    wait_until(lambda: bool(looks), SOON, "the bell was heard")
    wait_until(resting.is_at_rest, SOON)
    assert len(resting.turns) == before


def test_p40_a_lost_ring_is_made_good_by_the_poll(polling: Resting) -> None:
    polling.start()
    hand_in(polling.queue)
    wait_until(lambda: polling.done == [Step.CONVERT], SOON, "the poll found the job")


def test_p40_a_job_that_comes_while_a_lane_lies_down_is_not_slept_through(
    data_dir: Path, resting: Resting
) -> None:
    """Rung between the turn that found nothing and the rest, with an hour until the poll."""
    resting.start()
    turn, wait, waits = resting.loop.turn, resting.bell.wait, [0]
    is_first = True

    def watched(seconds: float) -> bool:
        waits[0] += 1
        return wait(seconds)

    def interrupted(lane: Lane) -> Run:
        nonlocal is_first
        run = turn(lane)
        if lane.state is State.CREATED and is_first:
            is_first = False
            hand_in(resting.queue)
            before = waits[0]
            ring(data_dir)
            wait_until(lambda: waits[0] > before, SOON, "the watch has looked, and waits again")
        return run

    resting.bell.wait = watched  # type: ignore[method-assign]
    resting.loop.turn = interrupted  # type: ignore[method-assign]
    resting.loop.wake()
    wait_until(lambda: resting.done == [Step.CONVERT], SOON, "the job was done")


def test_p40_a_storm_of_rings_costs_a_hundred_looks_a_second_at_most(
    data_dir: Path, resting: Resting
) -> None:
    resting.start()
    looks = _count_looks(resting)
    began = time.monotonic()
    for _ in range(3000):
        ring(data_dir)
    wait_until(lambda: bool(looks), SOON)
    assert len(looks) <= (time.monotonic() - began) * 100 + 3


def test_p40_the_watch_goes_on_when_the_store_cannot_be_looked_at(
    polling: Resting, caplog: pytest.LogCaptureFixture
) -> None:
    counts, faults = polling.queue.counts, [OSError("gone for a moment")]

    def fail_once() -> dict[State, int]:
        if faults:
            raise faults.pop()
        return counts()

    polling.start()
    polling.queue.counts = fail_once  # type: ignore[method-assign]
    wait_until(lambda: not faults, SOON)
    hand_in(polling.queue)
    wait_until(lambda: polling.done == [Step.CONVERT], SOON, "the poll found the job")
    assert [r.levelno for r in caplog.records if "looked at" in r.message] == [logging.ERROR]


def test_p40_a_step_looks_at_its_claim_as_soon_as_the_bell_rings(
    database: Database,
) -> None:
    """Cancelled by the owner, say: the clock of this test stands still."""
    queue, rings = SqliteQueue(database), [0]
    job = to_state(queue, State.TRANSCRIBE)
    hold = Hold(
        queue,
        held(queue, State.TRANSCRIBE),
        threading.Event(),
        utcnow,
        rings=lambda: rings[0],
        tick=lambda: 0.0,
    )
    queue.cancel(job.id, utcnow())
    assert not hold.stopped(), "nobody has rung"
    rings[0] += 1
    assert hold.stopped()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path / "data", WORKER__POLL_INTERVAL=LONGEST_POLL) as found:
        yield found


def test_p40_a_worker_whose_poll_is_a_minute_takes_up_what_comes_in(
    running: Service, tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing.ogg"
    nothing.write_text("no recording at all")
    running.start_worker()
    # The first may be found by the first look; the others come to a worker that rests.
    for _ in range(3):
        running.wait_for(running.hand_in(nothing), State.FAILED, seconds=30)


def test_p41_the_claim_of_a_gone_worker_is_free_at_once_however_long_the_poll(
    running: Service, tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing.ogg"
    nothing.write_text("no recording at all")
    running.start_worker()
    running.wait_for(running.hand_in(nothing), State.FAILED, seconds=30)
    # Paused, so that the worker does not come first.
    running.queue.pause_step(Step.CONVERT, utcnow())
    job = running.hand_in(nothing)
    with running.house.database.transaction() as connection:
        connection.execute(
            "UPDATE transcribe_jobs SET acquisition_id = 'a', acquire_time = updated, "
            "worker = 'worker-gone' WHERE id = ?",
            (job.id,),
        )
    running.wait(lambda: not running.queue.get(job.id).is_running, SOON, "the claim is free")
    assert "convert worker_lost" in running.outcomes(job)


NO_FIFOS = """
import os
def refuse(*_):
    raise PermissionError(1, "Operation not permitted")
os.mkfifo = refuse
"""


@pytest.mark.parametrize("breaking", ["", NO_FIFOS], ids=["bell", "no bell"])
def test_p40_a_resting_worker_ends_when_told_and_takes_its_bell_with_it(
    tmp_path: Path, breaking: str
) -> None:
    with worker(tmp_path, breaking, PISAR_WORKER__POLL_INTERVAL=LONGEST_POLL) as process:
        until_ready(process)
        assert len(list((tmp_path / "run").glob("*.bell"))) == (0 if breaking else 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SOON) == 0
    assert not list((tmp_path / "run").iterdir())


def test_p40_without_fifos_the_worker_goes_by_its_poll(database: Database, data_dir: Path) -> None:
    queue = SqliteQueue(database)
    with worker(data_dir, NO_FIFOS) as process:
        until_ready(process)
        job = hand_in(queue, utcnow())
        # Its file is not there, which is a matter of the step: the job was taken up.
        wait_until(lambda: queue.get(job.id).attempts > 0, 30, "the job was claimed")


def _count_looks(resting: Resting) -> list[None]:
    looks: list[None] = []
    counts = resting.queue.counts

    def counted() -> dict[State, int]:
        looks.append(None)
        return counts()

    resting.queue.counts = counted  # type: ignore[method-assign]
    return looks
