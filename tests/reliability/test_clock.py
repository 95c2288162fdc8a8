"""The clock steps an hour back or eight hours ahead under the running loop (Q23, hazard 4)."""

import random
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from app.clock import later
from app.db import Database
from app.errors import AppError
from app.job import ACTIVE, STEP_OF, Job, State
from app.liveness import Presence
from app.migrate import open_database
from app.queue.port import StepResult
from app.queue.sqlite import SqliteQueue
from app.storage.local import LocalStorage
from tests.queue.hands import RESULTS, START, hand_in, recognized, to_state
from worker.loop import Lane, Limits, Loop, Run
from worker.work import Snooze, Work

HOUR = 3600.0
LEASE = 3600.0
Doing = Callable[[Work], StepResult | Snooze]


class House:
    """Two workers' loops over one store, and the one clock that both look at."""

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
                now=self.moment,
                poll_seconds=1,
            )
            for presence in self.presences
        ]

    def moment(self) -> datetime:
        return self.now

    def step_by(self, seconds: float) -> None:
        """Set the clock, as a time server or a person would."""
        self.now = later(self.now, seconds)

    def turn(self, worker: int, state: State, doing: Doing | None = None) -> Run:
        does = doing or (lambda work: RESULTS[state]())
        return self.loops[worker].turn(Lane(state, STEP_OF[state], _Runner(does), LEASE))

    def outcomes(self, job: Job) -> list[str]:
        return [event.outcome for event in self.queue.events(job.id)]


class _Runner:
    def __init__(self, doing: Doing) -> None:
        self.run = doing


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    for presence in house.presences:
        presence.close()
    house.database.close()


def crash(work: Work) -> StepResult:
    raise AppError("convert_crashed")


@pytest.mark.parametrize("state", ACTIVE)
def test_q23_hazard_04_an_hour_back_no_waiting_job_is_hidden(house: House, state: State) -> None:
    to_state(house.queue, state)
    house.step_by(-HOUR)
    assert house.turn(0, state) is Run.WORKED


def test_q23_hazard_04_an_hour_back_no_pausing_job_is_hidden_for_that_hour(house: House) -> None:
    hand_in(house.queue)
    assert house.turn(0, State.CREATED, crash) is Run.FAILED
    house.step_by(-HOUR)
    assert house.turn(0, State.CREATED) is Run.WORKED
    assert house.turn(0, State.CONVERTED) is Run.WORKED
    assert house.turn(0, State.TRANSCRIBE, lambda work: Snooze(5)) is Run.WORKED
    house.step_by(-HOUR)
    assert house.turn(0, State.TRANSCRIBE) is Run.WORKED


def test_q23_hazard_04_an_hour_back_a_running_job_is_not_given_to_a_second(house: House) -> None:
    job = hand_in(house.queue)

    def go_back_while_working(work: Work) -> StepResult:
        house.step_by(-HOUR)
        assert house.turn(1, State.CREATED) is Run.IDLE
        work.report(0.5)
        house.step_by(0.9 * LEASE)
        # The report renewed the lease by the clock as it then was.
        assert house.turn(1, State.CREATED) is Run.IDLE
        return RESULTS[State.CREATED]()

    assert house.turn(0, State.CREATED, go_back_while_working) is Run.WORKED
    assert house.outcomes(job) == ["accepted", "success"]
    assert all((event.seconds or 0) >= 0 for event in house.queue.events(job.id))


def test_q23_hazard_04_an_hour_back_the_job_of_a_dead_worker_does_not_wait_for_it(
    house: House,
) -> None:
    job = hand_in(house.queue)
    gone = house.presences[0].name

    def die(work: Work) -> StepResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        house.turn(0, State.CREATED, die)
    house.step_by(-HOUR)
    assert house.turn(1, State.CREATED) is Run.IDLE
    house.queue.release_lost(lambda name: name == gone, house.now)
    assert house.turn(1, State.CREATED) is Run.WORKED
    assert house.outcomes(job) == ["accepted", "worker_lost", "success"]


@pytest.mark.parametrize("state", ACTIVE)
def test_q23_hazard_04_eight_hours_ahead_the_result_is_written_once(
    house: House, state: State
) -> None:
    """The lease is over by such a clock, so a second works on it too: only its result counts."""
    job = to_state(house.queue, state)
    before = house.outcomes(job).count("success")
    said = recognized("What the second heard.")

    def leap_while_working(work: Work) -> StepResult:
        house.step_by(8 * HOUR)
        doing = (lambda work: said) if state is State.TRANSCRIBE else None
        assert house.turn(1, state, doing) is Run.WORKED
        return RESULTS[state]()

    assert house.turn(0, state, leap_while_working) is Run.LOST
    assert house.outcomes(job).count("success") == before + 1
    if state is State.TRANSCRIBE:
        assert house.queue.transcript(job.id) == said.transcript


def test_q23_hazard_04_eight_hours_ahead_ends_pauses_and_spends_nothing_more(house: House) -> None:
    job = hand_in(house.queue)
    assert house.turn(0, State.CREATED, crash) is Run.FAILED
    house.step_by(8 * HOUR)
    assert house.turn(0, State.CREATED) is Run.WORKED
    assert house.queue.get(job.id).attempts == 0


def test_q23_hazard_04_a_clock_that_goes_anywhere_hides_and_doubles_nothing(house: House) -> None:
    chance = random.Random(4)  # noqa: S311 - the same walk each time
    jumps = (-HOUR, 8 * HOUR, -8 * HOUR, 0.5, 60)
    jobs = [hand_in(house.queue, house.now) for _ in range(25)]
    turns = 0

    def wander(depth: int) -> Doing:
        def run(given: Work) -> StepResult | Snooze:
            house.step_by(chance.choice(jumps))
            if depth < 2:
                house.turn(1 - depth, chance.choice(ACTIVE), wander(depth + 1))
            kind = chance.random()
            if kind < 0.2:
                raise AppError("convert_crashed")
            if kind < 0.4 and given.job.state is State.TRANSCRIBE:
                return Snooze(5)
            return RESULTS[given.job.state]()

        return run

    while house.queue.counts()[State.DONE] + house.queue.counts()[State.DEAD] < len(jobs):
        turns += 1
        assert turns < 5000, f"hidden for ever: {house.queue.counts()}"
        house.turn(chance.randrange(2), chance.choice(ACTIVE), wander(0))
        house.step_by(chance.choice(jumps))
    assert house.queue.counts()[State.DONE] > len(jobs) / 2
    for job in jobs:
        steps = [event.step for event in house.queue.events(job.id) if event.outcome == "success"]
        assert len(steps) == len(set(steps)), steps
        assert (house.queue.transcript(job.id) is None) == (
            house.queue.get(job.id).state is State.DEAD
        )
