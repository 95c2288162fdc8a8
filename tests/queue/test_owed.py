"""What the owner's verbs do to the reply that a job owes its sender (P47, CQ20)."""

import pytest

from app.db import Database
from app.errors import AppError
from app.job import ACTIVE, Job, Source, State
from app.queue.replies import Reason, Replies
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import LEASE, RESULTS, START, at, hand_in, held

BIN = 7 * 86400.0
NOW = at(LEASE + 100)
"""When the owner acts."""


def owed(database: Database) -> list[tuple[str, str]]:
    with database.read() as connection:
        found = connection.execute("SELECT verdict, state FROM replies").fetchall()
    return [(row["verdict"], row["state"]) for row in found]


def _from_a_chat(queue: SqliteQueue, end: State) -> Job:
    """A job of a chat that ended; its reply is owed."""
    job = hand_in(queue, source=Source.TELEGRAM, tg_chat_id=5, tg_reply_message_id=7)
    for state in ACTIVE:
        taken = held(queue, state)
        if end is State.FAILED:
            assert queue.fail(taken, AppError("recognizer_refused"), START)
            break
        assert queue.finish(taken, RESULTS[state](), START)
    assert queue.get(job.id).state is end
    return job


@pytest.mark.parametrize("end", [State.DONE, State.FAILED])
def test_cq20_the_answer_of_a_deleted_job_is_not_sent_until_it_is_back(
    queue: SqliteQueue, database: Database, end: State
) -> None:
    job, replies = _from_a_chat(queue, end), Replies(database, "bot-one")
    queue.delete(job.id, START)
    assert replies.take(NOW) is None
    assert not replies.expire(60, NOW), "nobody failed to send it"
    assert queue.undelete(job.id, BIN, NOW)
    taken = replies.take(NOW)
    assert taken and (taken.reply.job, taken.reply.verdict) == (job.id, end)
    assert replies.sent(taken.reply, NOW)
    queue.delete(job.id, NOW)
    queue.undelete(job.id, BIN, NOW)
    assert replies.take(NOW) is None, "it was sent already"


@pytest.mark.parametrize("end", [State.DONE, State.FAILED])
def test_p47_the_answer_of_a_job_in_the_bin_is_not_owed_again(
    queue: SqliteQueue, database: Database, end: State
) -> None:
    job, replies = _from_a_chat(queue, end), Replies(database, "bot-one")
    taken = replies.take(START)
    assert taken and replies.undelivered(taken.reply, Reason.UNREACHABLE, START)
    queue.delete(job.id, START)
    with pytest.raises(AppError) as refused:
        replies.send_again(job.id, NOW)
    assert refused.value.code == "wrong_state"
    queue.undelete(job.id, BIN, NOW)
    assert replies.send_again(job.id, NOW).verdict is end


def test_p47_a_job_that_goes_on_owes_no_word_of_its_former_end(
    queue: SqliteQueue, database: Database
) -> None:
    job, replies = _from_a_chat(queue, State.FAILED), Replies(database, "bot-one")
    queue.revive(job.id, NOW)
    assert replies.take(NOW) is None
    for state in ACTIVE:
        assert queue.finish(held(queue, state, NOW), RESULTS[state](), NOW)
    assert owed(database) == [("done", "owed")]


def test_p47_what_could_not_be_said_of_a_former_end_is_not_said_later(
    queue: SqliteQueue, database: Database
) -> None:
    job, replies = _from_a_chat(queue, State.FAILED), Replies(database, "bot-one")
    taken = replies.take(START)
    assert taken and replies.undelivered(taken.reply, Reason.UNREACHABLE, START)
    queue.revive(job.id, NOW)
    with pytest.raises(AppError) as refused:
        replies.send_again(job.id, NOW)
    assert refused.value.code == "wrong_state"


def test_cq20_who_waits_for_a_deleted_job_is_told_that_it_was_cancelled(
    queue: SqliteQueue, database: Database
) -> None:
    job = hand_in(queue, source=Source.TELEGRAM, tg_chat_id=5, tg_reply_message_id=7)
    taken = held(queue)
    queue.delete(job.id, NOW)
    assert owed(database) == [("failed", "owed")]
    assert not queue.finish(taken, RESULTS[State.CREATED](), NOW)
    assert owed(database) == [("failed", "owed")]
