"""Who writes which column, and what the order of acceptance protects from (hazards 22-24)."""

import re
from dataclasses import fields

import pytest

from app.db import Database
from app.errors import AppError
from app.job import Job, State
from app.queue.port import Claim
from app.queue.records import SQL
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import RESULTS, at, claim, hand_in, held, to_state

STEPS = {
    "convert": ("finish_convert",),
    "recognize": ("intend", "finish_recognize"),
    "check": ("finish_check",),
}
"""The statements by which each step writes its result."""

OF_THE_STEPS = {
    "convert": {"file", "duration_seconds", "playable_file"},
    "recognize": {"recognition_intent", "recognition_op_id", "recognizer"},
    "check": {"detected_language"},
}
OF_THE_QUEUE = {
    "state",
    "delay_time",
    "acquisition_id",
    "acquire_time",
    "worker",
    "attempts",
    "progress",
    "error_code",
    "error_text",
    "ended_from",
    "polls",
    "turn",
    "updated",
}
"""Moved by the loop with each claim and each end of one, whatever the step."""
OF_THE_OWNER = {"deleted"}
OF_THE_INTAKE = {
    "seq",
    "id",
    "source",
    "display_name",
    "language",
    "source_file",
    "sender",
    "dedupe_key",
    "dedupe_digest",
    "tg_chat_id",
    "tg_reply_message_id",
    "created",
    "priority",
}
"""Written once, as the job comes in, and by no statement after."""
OWNERS_VERBS = ("revive", "cancel", "delete", "undelete")


def set_by(statement: str) -> set[str]:
    """The columns of the job that a statement updates."""
    text = re.sub(r"--[^\n]*", "", SQL[statement])
    found = re.search(r"UPDATE transcribe_jobs\s+SET (.*)", text, re.S)
    if found is None:
        return set()
    while (flat := re.sub(r"\([^()]*\)", "", text)) != text:  # subqueries set nothing
        text = flat
    clause = re.split(r"\bWHERE\b", text.split("SET", 1)[1])[0]
    return set(re.findall(r"(?:^|,)\s*(\w+)\s*=", clause))


def test_hazard_23_the_columns_are_read_from_the_statements_as_they_are() -> None:
    assert set_by("report") == {"progress", "acquire_time", "updated"}
    assert set_by("snooze") >= {"delay_time", "polls", "turn", "worker"}
    assert set_by("bury") >= {"state", "ended_from", "error_code"}
    assert set_by("add_job") == set_by("job") == set()


@pytest.mark.parametrize("step", STEPS)
def test_p09_hazard_23_a_step_writes_its_own_columns_and_those_of_the_queue(step: str) -> None:
    written = set().union(*map(set_by, STEPS[step]))
    assert written - OF_THE_QUEUE == OF_THE_STEPS[step]


def test_hazard_23_each_column_has_one_owner() -> None:
    shares = [*OF_THE_STEPS.values(), OF_THE_QUEUE, OF_THE_OWNER, OF_THE_INTAKE]
    owned = [column for share in shares for column in share]
    assert len(owned) == len(set(owned))
    assert set(owned) == {field.name for field in fields(Job)}


def test_hazard_23_no_other_statement_writes_what_a_step_or_the_intake_owns() -> None:
    of_steps = {name for statements in STEPS.values() for name in statements}
    for statement in set(SQL) - of_steps:
        # Revive takes back what the steps gave; else nobody touches a column of theirs.
        allowed = OF_THE_QUEUE
        if statement in OWNERS_VERBS:
            allowed = OF_THE_QUEUE | OF_THE_OWNER | {"file", "playable_file", "recognition_intent"}
        assert set_by(statement) <= allowed, statement


def test_p06_hazard_24_the_newest_job_is_erased_and_its_late_worker_finishes(
    queue: SqliteQueue, database: Database
) -> None:
    """Were its number used again, the late result would land on the newcomer."""
    erased = hand_in(queue)
    late = held(queue)
    with database.transaction() as connection:
        connection.execute("DELETE FROM transcribe_jobs WHERE id = ?", (erased.id,))
    newcomer = hand_in(queue)
    assert newcomer.seq > erased.seq
    taken = held(queue)
    before = queue.get(newcomer.id)
    assert not queue.finish(late, RESULTS[State.CREATED](), at(1))
    assert not queue.fail(late, AppError("not_media"), at(1))
    assert queue.get(newcomer.id) == before
    assert queue.finish(taken, RESULTS[State.CREATED](), at(2))


def test_p13_p21_hazard_22_a_check_that_works_every_second_time_never_dies_and_is_seen(
    queue: SqliteQueue,
) -> None:
    """Only failures in a row count. So it goes on, each failure with its line and its pause."""
    job = to_state(queue, State.TRANSCRIBE)
    moment = at(0)
    for _ in range(20):
        taken = held(queue, State.TRANSCRIBE, moment)
        assert queue.retry(taken, AppError("engine_silent"), 1, moment)
        row = queue.get(job.id)
        assert (row.attempts, row.error_code) == (1, "engine_silent")
        moment = row.delay_time or moment
        assert queue.snooze(held(queue, State.TRANSCRIBE, moment), 5, moment)
        moment = queue.get(job.id).delay_time or moment
    assert isinstance(claim(queue, State.TRANSCRIBE, moment), Claim)
    assert [event.outcome for event in queue.events(job.id)].count("failure") == 20
    assert queue.get(job.id).polls == 20
