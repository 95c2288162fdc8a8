"""An operation that was accepted elsewhere is not begun, nor paid, a second time."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import utcnow
from app.job import Job, State
from app.migrate import open_database
from app.queue.port import Converted
from app.queue.sqlite import SqliteQueue
from app.storage.kinds import WAV
from app.storage.local import LocalStorage
from tests.processes import wait_until
from tests.queue.hands import RESULTS, START, hand_in, held
from tests.speech import silence, write_wav
from tests.steps.paid import PaidService, paid_service
from tests.worker.test_process import worker


@pytest.fixture
def paid() -> Iterator[PaidService]:
    with paid_service() as service:
        yield service


@pytest.fixture
def queue(data_dir: Path) -> Iterator[SqliteQueue]:
    database = open_database(data_dir, utcnow())
    yield SqliteQueue(database)
    database.close()


def converted_job(queue: SqliteQueue, data_dir: Path) -> Job:
    storage = LocalStorage(data_dir, data_dir)
    sound = write_wav(data_dir / "a.wav", silence(1))
    file = storage.adopt(sound, WAV.extension, WAV.media_type)
    hand_in(queue, utcnow())
    taken = held(queue, now=utcnow())
    assert queue.finish(taken, Converted(file, 1.0, False), utcnow())
    return queue.get(taken.job.id)


def engine(paid: PaidService, **how: bool) -> str:
    """Code that gives the worker process the paid engine."""
    return (
        "from tests.steps.paid import PaidRecognizer\n"
        f"w.EmbeddedRecognizer = lambda settings: PaidRecognizer({paid.port}, **{how!r})"
    )


def test_hazard_20_a_worker_killed_after_the_acceptance_does_not_pay_twice(
    queue: SqliteQueue, data_dir: Path, paid: PaidService
) -> None:
    job = converted_job(queue, data_dir)
    with worker(data_dir, engine(paid, dies=True)) as first:
        first.wait(30)
    row = queue.get(job.id)
    assert (row.state, row.recognition_op_id) == (State.CONVERTED, None)
    assert paid.names == [row.recognition_intent], "accepted, and its id never stored"
    with worker(data_dir, engine(paid)):
        wait_until(lambda: queue.get(job.id).state is State.DONE, 30, "the text")
    assert len(paid.names) == 1
    text = queue.transcript(job.id)
    assert text is not None
    assert text.text == "operation-1"


def test_hazard_20_where_nothing_can_be_looked_up_the_same_name_is_used_again(
    queue: SqliteQueue, data_dir: Path, paid: PaidService
) -> None:
    job = converted_job(queue, data_dir)
    with worker(data_dir, engine(paid, dies=True, can_find=False)) as first:
        first.wait(30)
    with worker(data_dir, engine(paid, can_find=False)):
        wait_until(lambda: queue.get(job.id).state is State.DONE, 30, "the text")
    assert len(paid.names) == 2
    assert len(set(paid.names)) == 1, "so that a service that knows such names begins it once"


def test_hazard_20_the_name_is_that_of_one_operation_only(queue: SqliteQueue) -> None:
    hand_in(queue, START)
    queue.finish(held(queue), RESULTS[State.CREATED](), START)
    taken = held(queue, State.CONVERTED)
    assert queue.intend(taken, "name-1", START)
    assert queue.get(taken.job.id).recognition_intent == "name-1"
    queue.finish(taken, RESULTS[State.CONVERTED](), START)
    assert queue.get(taken.job.id).recognition_intent is None
    assert not queue.intend(taken, "name-2", START), "the claim has ended"


def test_hazard_20_a_revived_job_keeps_the_name_of_what_may_have_been_begun(
    queue: SqliteQueue,
) -> None:
    hand_in(queue, START)
    queue.finish(held(queue), RESULTS[State.CREATED](), START)
    taken = held(queue, State.CONVERTED)
    queue.intend(taken, "name-1", START)
    queue.cancel(taken.job.id, START)
    assert queue.revive(taken.job.id, START).recognition_intent == "name-1"
    queue.cancel(taken.job.id, START)
    assert queue.revive(taken.job.id, START, from_source=True).recognition_intent is None
