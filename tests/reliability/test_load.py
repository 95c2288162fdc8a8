"""Ten at once, and work that takes longer than its lease."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from app.clock import later, utcnow
from app.db import Database
from app.job import ACTIVE, Job, State, Step
from app.liveness import Presence
from app.migrate import open_database
from app.queue.port import StepResult
from app.queue.sqlite import SqliteQueue
from app.storage.local import LocalStorage
from tests.queue.hands import START, converted, hand_in
from tests.reliability import light_worker
from tests.service.house import Service, service
from tests.speech import DATA
from worker.hold import Hold
from worker.loop import Lane, Limits, Loop, Run
from worker.work import Work

HEAVY = light_worker.HEAVY.encode()


def test_cq14_ten_at_once_are_recognized_one_after_another(tmp_path: Path) -> None:
    with service(tmp_path / "data", tiny=False) as running:
        jobs = [running.hand_in(DATA / "english-short.mp3", f"heavy {n}") for n in range(10)]
        assert [running.queue.position(job) for job in jobs] == list(range(1, 11))
        worker = running.start_worker(light_worker.__name__)
        most = watch(running, lambda: done(running) >= 3, worker.pid)
        running.kill(worker)

        # After the restart the rest still know their places, and go on.
        running.queue.release_lost(lambda name: True, utcnow())
        for state in ACTIVE:
            waiting = [running.queue.get(job.id) for job in jobs]
            places = [running.queue.position(job) for job in waiting if job.state is state]
            assert places == list(range(1, len(places) + 1))
        worker = running.start_worker(light_worker.__name__)
        most = max(most, watch(running, lambda: done(running) == len(jobs), worker.pid))
        assert most == 1
        spans = sorted(span for job in jobs for span in recognitions(running, job))
    assert len(spans) == len(jobs)
    # Times are kept to the millisecond.
    assert all(ends <= begins + 0.002 for (_, ends), (begins, _) in pairwise(spans))


def done(running: Service) -> int:
    return running.queue.counts()[State.DONE]


def watch(running: Service, condition: Callable[[], bool], pid: int) -> int:
    """The most heavy children that a worker had at one time, until the condition holds."""
    seen = [0]

    def looked() -> bool:
        seen.append(sum(map(_is_heavy, _children(pid))))
        return condition()

    running.wait(looked, 90, "the work goes on")
    return max(seen)


def _children(pid: int) -> list[int]:
    """As children_of(), without a walk through all processes: this is asked at every moment."""
    told = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread ended meanwhile
            told += path.read_text().split()
    return [int(child) for child in told]


def _is_heavy(pid: int) -> bool:
    try:
        return HEAVY in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def recognitions(running: Service, job: Job) -> list[tuple[float, float]]:
    """When each recognition that came to an end began and ended, in seconds."""
    return [
        (event.time.timestamp() - (event.seconds or 0), event.time.timestamp())
        for event in running.queue.events(job.id)
        if event.step is Step.CHECK and event.outcome == "success"
    ]


class TwoWorkers:
    """Two loops over one store, with the clock in hand; the lease is five seconds."""

    LEASE = 5.0

    def __init__(self, data_dir: Path) -> None:
        self.now = START
        self.database: Database = open_database(data_dir, START)
        self.queue = SqliteQueue(self.database)
        self.presences = [Presence(data_dir, "worker") for _ in range(2)]
        self.loops = [
            Loop(
                queue=self.queue,
                storage=LocalStorage(data_dir, presence.scratch),
                worker=presence.name,
                scratch=presence.scratch,
                limits=Limits(max_attempts=5, retry_cap_seconds=300),
                now=lambda: self.now,
                poll_seconds=1,
            )
            for presence in self.presences
        ]

    def turn(self, worker: int, doing: Callable[[Work], StepResult]) -> Run:
        return self.loops[worker].turn(
            Lane(State.CREATED, Step.CONVERT, _Runner(doing), self.LEASE)
        )

    def seconds(self) -> float:
        """The clock of the test in seconds, as the monotonic one."""
        return (self.now - START).total_seconds()


class _Runner:
    def __init__(self, doing: Callable[[Work], StepResult]) -> None:
        self.run = doing


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoWorkers]:
    two = TwoWorkers(tmp_path)
    monkeypatch.setattr("worker.loop.Hold", partial(Hold, tick=two.seconds))
    yield two
    for presence in two.presences:
        presence.close()
    two.database.close()


def test_cq04_work_of_twelve_leases_is_done_once(two: TwoWorkers) -> None:
    job = hand_in(two.queue)
    begun = []

    def long_work(work: Work) -> StepResult:
        begun.append(work.job.attempts)
        for second in range(60):
            two.now = later(two.now, 1)
            work.report(second / 60)
            assert not work.stopped()
            assert two.turn(1, long_work) is Run.IDLE, "a second worker took it"
        return converted()

    assert two.turn(0, long_work) is Run.WORKED
    assert begun == [1]
    assert [event.outcome for event in two.queue.events(job.id)] == ["accepted", "success"]


def test_cq04_work_that_says_nothing_for_a_lease_is_taken_over_and_written_once(
    two: TwoWorkers,
) -> None:
    """The bound for a worker that hangs: the second's result stands, the first is told to stop."""
    job = hand_in(two.queue)

    def hang(work: Work) -> StepResult:
        two.now = later(two.now, two.LEASE)
        assert two.turn(1, lambda other: converted()) is Run.WORKED
        assert work.stopped()
        return converted()

    assert two.turn(0, hang) is Run.LOST
    outcomes = [event.outcome for event in two.queue.events(job.id)]
    assert outcomes == ["accepted", "lease_ended", "success"]
