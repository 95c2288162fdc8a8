"""The loop: claim, step, record – with steps of the tests' own over the real store."""

import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from app import metrics
from app.clock import later
from app.db import Database
from app.errors import AppError
from app.job import State, Step
from app.liveness import Presence
from app.migrate import open_database
from app.queue.port import StepResult
from app.queue.sqlite import SqliteQueue
from app.storage.local import LocalStorage
from tests.queue.hands import START, converted, hand_in, held, piece, recognized, to_state
from worker.loop import Lane, Limits, Loop, Run
from worker.work import Snooze, Stopped, Work

LEASE = 3600.0
Doing = Callable[[Work], StepResult | Snooze]


class Runner:
    """A step that does what the test says."""

    def __init__(self, doing: Doing) -> None:
        self.doing = doing
        self.seen: list[Work] = []

    def run(self, work: Work) -> StepResult | Snooze:
        self.seen.append(work)
        return self.doing(work)


class House:
    """A loop over a real store, with a clock in hand."""

    def __init__(self, data_dir: Path) -> None:
        self.database: Database = open_database(data_dir, START)
        self.queue = SqliteQueue(self.database)
        self.presence = Presence(data_dir, "worker")
        self.storage = LocalStorage(data_dir, self.presence.scratch)
        self.now = START
        self.loop = Loop(
            queue=self.queue,
            storage=self.storage,
            worker=self.presence.name,
            scratch=self.presence.scratch,
            limits=Limits(max_attempts=3, retry_cap_seconds=300),
            now=self.moment,
            poll_seconds=0.05,
        )

    def moment(self) -> datetime:
        return self.now

    def turn(self, doing: Doing, state: State = State.CREATED) -> Run:
        return self.loop.turn(lane(Runner(doing), state))

    def close(self) -> None:
        self.presence.close()
        self.database.close()


def lane(runner: Runner, state: State = State.CREATED) -> Lane:
    step = {State.CREATED: Step.CONVERT, State.TRANSCRIBE: Step.CHECK}[state]
    return Lane(state, step, runner, LEASE)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


def count(outcome: str, step: Step = Step.CONVERT) -> float:
    return metrics.worker_runs.labels(step, outcome)._value.get()


def crash(work: Work) -> StepResult:
    raise AppError("convert_crashed", "signal 11")


def test_p01_an_empty_poll_counts_nothing_and_logs_nothing(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    before = (count("success"), count("failure"))
    assert house.turn(crash) is Run.IDLE
    assert (count("success"), count("failure")) == before
    assert caplog.records == []


def test_p02_emptiness_survives_another_words(house: House) -> None:
    """A layer that words the note differently does not turn emptiness into work."""
    claim = house.queue.claim

    def reworded(*args, **kwargs):  # type: ignore[no-untyped-def]
        found = claim(*args, **kwargs)
        return type(found)(f"{found.note}, says the layer in between")

    house.queue.claim = reworded  # type: ignore[method-assign]
    assert house.turn(crash) is Run.IDLE


def test_p03_a_failure_born_while_emptiness_is_handled_is_a_failure(house: House) -> None:
    """No chain of exceptions can carry emptiness, since emptiness is no exception."""
    hand_in(house.queue)

    def chained(work: Work) -> StepResult:
        try:
            raise LookupError("no job is ready in created")
        except LookupError:
            raise AppError("convert_crashed") from None

    before = count("failure")
    assert house.turn(chained) is Run.FAILED
    assert count("failure") == before + 1


def test_p04_one_failure_gives_one_warning_and_counts_once(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    job = hand_in(house.queue)
    caplog.set_level(logging.INFO)
    before = count("failure")
    assert house.turn(crash) is Run.FAILED
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert vars(record)["job_id"] == job.id
    assert vars(record)["attempt"] == 1
    assert count("failure") == before + 1


def test_p04_a_success_counts_once_and_logs_no_failure(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    hand_in(house.queue)
    caplog.set_level(logging.INFO)
    before = count("success")
    assert house.turn(lambda work: converted()) is Run.WORKED
    assert count("success") == before + 1
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_p04_a_verdict_and_a_death_are_one_error_each(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    hand_in(house.queue)
    caplog.set_level(logging.WARNING)

    def verdict(work: Work) -> StepResult:
        raise AppError("no_audio_track")

    assert house.turn(verdict) is Run.FAILED
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    caplog.clear()

    hand_in(house.queue)
    for _ in range(3):
        assert house.turn(crash) is Run.FAILED
        house.now = later(house.now, 400)
    caplog.clear()
    assert house.turn(crash) is Run.BURIED
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_p08_a_step_that_lost_its_claim_writes_nothing(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    job = hand_in(house.queue)
    caplog.set_level(logging.INFO)
    before = (count("success"), count("failure"))

    def outlive_the_lease(work: Work) -> StepResult:
        house.now = later(house.now, LEASE)
        held(house.queue, now=house.now, lease=LEASE, worker="another")
        path = work.folder / "out.wav"
        path.write_bytes(b"RIFF")
        result = converted()
        return type(result)(house.storage.adopt(path, ".wav", "audio/wav"), 1.0, True)

    assert house.turn(outlive_the_lease) is Run.LOST
    row = house.queue.get(job.id)
    assert (row.state, row.worker, row.file) == (State.CREATED, "another", job.file)
    assert (count("success"), count("failure")) == before
    assert all(record.levelno <= logging.INFO for record in caplog.records)
    assert list(house.storage._root.iterdir()) == [], "the lost step's file was left behind"


def test_p13_an_unforeseen_exception_is_a_failure_without_its_words(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    job = hand_in(house.queue)

    def stumble(work: Work) -> StepResult:
        raise FileNotFoundError("/data/storage/files/abc/secret-name.ogg")

    assert house.turn(stumble) is Run.FAILED
    row = house.queue.get(job.id)
    assert (row.state, row.error_code) == (State.CREATED, "internal")
    assert row.error_text is not None
    assert "FileNotFoundError" in row.error_text
    assert "secret-name" not in row.error_text + caplog.text


def test_p14_a_job_beyond_the_limit_never_reaches_the_step(house: House) -> None:
    hand_in(house.queue)
    runner = Runner(crash)
    for _ in range(3):
        assert house.loop.turn(lane(runner)) is Run.FAILED
        house.now = later(house.now, 400)
    assert house.loop.turn(lane(runner)) is Run.BURIED
    assert len(runner.seen) == 3
    assert house.loop.turn(lane(runner)) is Run.IDLE


def test_p17_no_failure_of_a_step_makes_a_job_dead(house: House) -> None:
    job = hand_in(house.queue)
    for _ in range(3):
        house.turn(crash)
        assert house.queue.get(job.id).state is State.CREATED
        house.now = later(house.now, 400)


def test_p20_the_second_pause_is_longer(house: House) -> None:
    job = hand_in(house.queue)
    pauses = []
    for _ in range(3):
        assert house.turn(crash) is Run.FAILED
        due = house.queue.get(job.id).delay_time
        assert due is not None
        pauses.append((due - house.now).total_seconds())
        house.now = due
    assert pauses == [1, 2, 4]


def test_p21_a_snooze_is_a_run_without_failure(house: House) -> None:
    job = to_state(house.queue, State.TRANSCRIBE)
    before = count("success", Step.CHECK)
    for _ in range(10):
        assert house.turn(lambda work: Snooze(5), State.TRANSCRIBE) is Run.WORKED
        row = house.queue.get(job.id)
        assert (row.attempts, row.delay_time) == (0, later(house.now, 5))
        house.now = later(house.now, 5)
    assert count("success", Step.CHECK) == before + 10


def test_p43_progress_is_written_at_most_once_a_second(house: House) -> None:
    job = hand_in(house.queue)
    written = []
    report = house.queue.report

    def counted(*args):  # type: ignore[no-untyped-def]
        written.append(args[1])
        return report(*args)

    house.queue.report = counted  # type: ignore[method-assign]

    def chatty(work: Work) -> StepResult:
        for percent in range(100):
            work.report(percent / 100)
        assert house.queue.get(job.id).progress == 0.0
        return converted()

    assert house.turn(chatty) is Run.WORKED
    assert len(written) == 1


def test_p44_a_step_told_to_stop_gives_its_job_back_uncounted(house: House) -> None:
    job = hand_in(house.queue)

    def obey(work: Work) -> StepResult:
        house.loop.stopping.set()
        assert work.stopped()
        raise Stopped

    assert house.turn(obey) is Run.RELEASED
    row = house.queue.get(job.id)
    assert (row.attempts, row.acquisition_id, row.delay_time) == (0, None, None)


def test_p44_draining_ends_the_lane_after_the_job_in_hand(house: House) -> None:
    hand_in(house.queue)
    hand_in(house.queue)

    def drain(work: Work) -> StepResult:
        house.loop.draining.set()
        return converted()

    house.loop.serve(lane(Runner(drain)))
    counts = house.queue.counts()
    assert (counts[State.CREATED], counts[State.CONVERTED]) == (1, 1)


def test_p48_a_cancelled_step_is_told_within_a_second_and_writes_nothing(house: House) -> None:
    job = hand_in(house.queue)
    begun, told = threading.Event(), threading.Event()

    def long_work(work: Work) -> StepResult:
        begun.set()
        deadline = threading.Event()
        for _ in range(400):
            if work.stopped():
                told.set()
                raise Stopped
            deadline.wait(0.005)
        return converted()

    runs: list[Run] = []
    thread = threading.Thread(target=lambda: runs.append(house.turn(long_work)))
    thread.start()
    assert begun.wait(5)
    house.queue.cancel(job.id, house.now)
    assert told.wait(1), "the step was not told in time"
    thread.join(5)
    assert runs == [Run.LOST]
    row = house.queue.get(job.id)
    assert (row.state, row.error_code) == (State.FAILED, "cancelled")


def test_a_piece_kept_after_the_claim_was_lost_stops_the_step(house: House) -> None:
    job = to_state(house.queue, State.TRANSCRIBE)

    def keep_too_late(work: Work) -> StepResult:
        work.keep(piece(0), 0.5)
        house.queue.cancel(job.id, house.now)
        work.keep(piece(1), 0.9)
        return recognized()

    assert house.turn(keep_too_late, State.TRANSCRIBE) is Run.LOST
    assert house.queue.pieces(job.id, "engine-a") == [piece(0)]


def test_an_outcome_that_the_store_refuses_is_written_when_it_takes_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = hand_in(house.queue)
    monkeypatch.setattr("worker.loop._FAULT_PAUSE_SECONDS", 0.01)
    finish, refusals = house.queue.finish, [AppError("disk_full"), AppError("disk_full")]

    def full_for_a_while(*args):  # type: ignore[no-untyped-def]
        if refusals:
            raise refusals.pop()
        return finish(*args)

    house.queue.finish = full_for_a_while  # type: ignore[method-assign]
    assert house.turn(lambda work: converted()) is Run.WORKED
    assert house.queue.get(job.id).state is State.CONVERTED


def test_the_scratch_directory_of_a_step_is_gone_whatever_happens(house: House) -> None:
    hand_in(house.queue)

    def litter(work: Work) -> StepResult:
        (work.folder / "half.wav").write_bytes(b"RIFF")
        raise AppError("convert_crashed")

    assert house.turn(litter) is Run.FAILED
    assert list(house.presence.scratch.iterdir()) == []


def test_a_lane_goes_on_after_the_store_failed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(house.queue)
    monkeypatch.setattr("worker.loop._FAULT_PAUSE_SECONDS", 0.01)
    claim, faults = house.queue.claim, [AppError("disk_full")]

    def fail_once(*args, **kwargs):  # type: ignore[no-untyped-def]
        if faults:
            raise faults.pop()
        return claim(*args, **kwargs)

    house.queue.claim = fail_once  # type: ignore[method-assign]

    def last(work: Work) -> StepResult:
        house.loop.draining.set()
        return converted()

    house.loop.serve(lane(Runner(last)))
    assert house.queue.counts()[State.CONVERTED] == 1


def test_a_lane_that_moved_a_job_wakes_the_next_step_at_once(house: House) -> None:
    """Otherwise each job would wait out the poll between its steps."""
    house.loop._poll_seconds = 60
    arrived = threading.Event()

    def last(work: Work) -> StepResult:
        arrived.set()
        house.loop.draining.set()
        return recognized()

    checker = threading.Thread(
        target=house.loop.serve, args=(lane(Runner(last), State.TRANSCRIBE),)
    )
    checker.start()
    to_state(house.queue, State.TRANSCRIBE)
    house.loop.wake()
    assert arrived.wait(5)
    checker.join(5)


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_called_so_wherever_it_shows(house: House, fault: int) -> None:
    job = hand_in(house.queue)

    def run_out_of_room(work: Work) -> StepResult:
        raise OSError(fault, os.strerror(fault), "/data/tmp/secret-name")

    assert house.turn(run_out_of_room) is Run.FAILED
    row = house.queue.get(job.id)
    assert row.error_code == "disk_full"
    assert "secret-name" not in (row.error_text or "")


def test_on_a_full_disk_jobs_wait_and_spend_no_attempts(
    house: House, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = hand_in(house.queue)
    convert = Lane(State.CREATED, Step.CONVERT, Runner(lambda work: converted()), LEASE, 1000)
    free = [999]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free[0]))
    for _ in range(10):
        assert house.loop.turn(convert) is Run.IDLE
    assert (house.queue.get(job.id).attempts, len(house.queue.events(job.id))) == (0, 1)
    assert [record.levelname for record in caplog.records] == ["WARNING"], "said once"
    free[0] = 1000
    assert house.loop.turn(convert) is Run.WORKED


@pytest.mark.parametrize("verb", ["report", "find"])
def test_a_store_fault_while_progress_is_told_costs_no_attempt(house: House, verb: str) -> None:
    hand_in(house.queue)

    def fall(*args):  # type: ignore[no-untyped-def]
        raise AppError("disk_full")

    setattr(house.queue, verb, fall)

    def work_on(work: Work) -> StepResult:
        work.report(0.5)
        deadline = threading.Event()
        for _ in range(15):
            assert not work.stopped()
            deadline.wait(0.05)
        return converted()

    assert house.turn(work_on) is Run.WORKED


def test_a_damaged_store_is_no_verdict_on_the_recording(house: House) -> None:
    job = hand_in(house.queue)

    def fall(work: Work) -> StepResult:
        raise AppError("database_damaged")

    assert house.turn(fall) is Run.FAILED
    assert house.queue.get(job.id).state is State.CREATED
