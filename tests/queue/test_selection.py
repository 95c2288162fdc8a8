"""P18: there is no separate "has an error" flag."""

from datetime import datetime

from app.db import Database
from app.job import ENDS, State
from app.queue.port import Claim, Nothing
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import hand_in


def test_p18_nothing_but_the_state_takes_a_job_out_of_selection(
    database: Database, now: datetime
) -> None:
    queue = SqliteQueue(database)
    job = hand_in(queue, now)
    with database.transaction() as connection:
        connection.execute(
            "UPDATE transcribe_jobs SET error_code = 'internal', error_text = 'boom',"
            " recognition_op_id = 'op', progress = 0.5"
        )
    claimed = take(queue, now)
    assert isinstance(claimed, Claim)
    assert claimed.job.id == job.id
    assert queue.release(claimed, now)
    for end in ENDS:
        with database.transaction() as connection:
            connection.execute(
                "UPDATE transcribe_jobs SET state = ?, ended_from = 'created'", (end,)
            )
        assert isinstance(take(queue, now), Nothing)


def take(queue: SqliteQueue, now: datetime) -> object:
    return queue.claim(State.CREATED, worker="w", lease_seconds=60, max_attempts=5, now=now)
