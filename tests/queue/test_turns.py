"""Whose job comes next: priority, then turns between senders, then acceptance (P50)."""

from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from app.assembly import opened
from app.db import Database
from app.errors import AppError
from app.job import ACTIVE, Job, State
from app.liveness import COMMAND
from app.queue.port import JobFilter
from app.queue.sqlite import SqliteQueue
from app.settings import Settings
from tests.queue.hands import RESULTS, START, at, claim, hand_in, held

MANY = 1000


def work_through(queue: SqliteQueue, state: State) -> list[Job]:
    """Claim and finish all that is ready in a state, in order."""
    done = []
    while (taken := claim(queue, state)) and hasattr(taken, "job"):
        queue.finish(taken, RESULTS[state](), START)  # type: ignore[arg-type]
        done.append(taken.job)
    return done


def turn_over(queue: SqliteQueue) -> Job | None:
    """One claim of each lane, the last step first, as slow engines work; gives the last."""
    last = claim(queue, State.TRANSCRIBE)
    for state in (State.CREATED, State.CONVERTED):
        taken = claim(queue, state)
        if hasattr(taken, "job"):
            queue.finish(taken, RESULTS[state](), START)  # type: ignore[arg-type]
    if not hasattr(last, "job"):
        return None
    queue.finish(last, RESULTS[State.TRANSCRIBE](), START)  # type: ignore[arg-type]
    return last.job


@pytest.mark.parametrize("converted_ahead", [0, 10, MANY])
def test_p50_a_thousand_files_of_one_sender_do_not_hold_up_the_one_of_another(
    queue: SqliteQueue, converted_ahead: int
) -> None:
    for _ in range(MANY):
        hand_in(queue, sender="telegram:1")
    for state in (State.CREATED, State.CONVERTED):
        for _ in range(converted_ahead):
            queue.finish(held(queue, state), RESULTS[state](), START)
    for _ in range(10):
        turn_over(queue)
    other = hand_in(queue, sender="telegram:2")
    served = [job.id for job in (turn_over(queue) for _ in range(6)) if job]
    assert other.id in served, "a place or two after what is being worked on, not a thousand"


def test_p50_senders_take_turns_and_each_keeps_its_own_order(queue: SqliteQueue) -> None:
    jobs = {
        sender: [hand_in(queue, sender=sender).id for _ in range(3)]
        for sender in ("token:a", "token:b", "owner:c")
    }
    order = [job.id for job in work_through(queue, State.CREATED)]
    assert order == [jobs[sender][turn] for turn in range(3) for sender in jobs]


def test_p50_a_sender_that_comes_back_has_no_debt_and_no_credit(queue: SqliteQueue) -> None:
    for _ in range(20):
        hand_in(queue, sender="token:a")
        turn_over(queue)
    assert turn_over(queue), "the last one is served as well"
    late = [hand_in(queue, sender="token:b").id for _ in range(3)]
    again = [hand_in(queue, sender="token:a").id for _ in range(3)]
    created = [job.id for job in work_through(queue, State.CREATED) if job.id in late + again]
    for one, other in pairwise(created):
        assert (one in late) != (other in late), "they take turns from here on"


@pytest.mark.parametrize("end", ["cancel", "delete", "fail"])
def test_p50_what_was_never_served_costs_its_sender_no_turn(queue: SqliteQueue, end: str) -> None:
    for _ in range(20):
        job = hand_in(queue, sender="token:a")
        if end == "fail":
            assert queue.fail(held(queue), AppError("not_media"), START)
        else:
            getattr(queue, end)(job.id, START)
    waiting = [hand_in(queue, sender="token:b").id for _ in range(5)]
    late = hand_in(queue, sender="token:a").id
    order = [job.id for job in work_through(queue, State.CREATED)]
    assert order.index(late) <= 1, "beside the first of the other sender, not behind them all"
    assert [job_id for job_id in order if job_id != late] == waiting


def test_p50_a_job_cancelled_in_the_middle_leaves_its_senders_order_alone(
    queue: SqliteQueue,
) -> None:
    jobs = [hand_in(queue, sender="token:a").id for _ in range(6)]
    for job_id in jobs[:3]:
        queue.cancel(job_id, START)
    jobs.append(hand_in(queue, sender="token:a").id)
    assert [job.id for job in work_through(queue, State.CREATED)] == jobs[3:]


def test_p50_the_owners_own_goes_first(queue: SqliteQueue) -> None:
    waiting = [hand_in(queue, sender="telegram:1").id for _ in range(3)]
    own = [hand_in(queue, sender="owner:1", priority=1).id for _ in range(2)]
    assert queue.position(queue.get(own[1])) == 2
    assert queue.position(queue.get(waiting[0])) == 3
    assert [job.id for job in work_through(queue, State.CREATED)] == own + waiting


def test_p50_switched_off_the_order_is_that_of_acceptance(database: Database) -> None:
    queue = SqliteQueue(database, takes_turns=False)
    senders = ["a", "a", "a", "b", "owner:1", "a"]
    jobs = [hand_in(queue, sender=name, priority=int(name == "owner:1")).id for name in senders]
    assert [job.id for job in work_through(queue, State.CREATED)] == jobs


@pytest.mark.parametrize(("fair", "turns"), [(True, [1, 2]), (False, [0, 0])])
def test_p50_the_setting_reaches_the_queue(tmp_path: Path, fair: bool, turns: list[int]) -> None:
    settings = Settings.model_validate(
        {"storage": {"data_dir": tmp_path / "house"}, "worker": {"fair_turns": fair}}
    )
    with opened(settings, COMMAND) as house:
        queue = cast(SqliteQueue, house.queue)
        assert [hand_in(queue, sender="a").turn for _ in range(2)] == turns


def test_p21_a_short_cap_of_retries_does_not_end_the_delay_between_checks(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"storage": {"data_dir": tmp_path / "house"}, "worker": {"retry_cap": 1}}
    )
    with opened(settings, COMMAND) as house:
        queue = cast(SqliteQueue, house.queue)
        hand_in(queue)
        for state in (State.CREATED, State.CONVERTED):
            work_through(queue, state)
        assert queue.snooze(held(queue, State.TRANSCRIBE), 5, START)
        assert not hasattr(claim(queue, State.TRANSCRIBE, at(4.9)), "job")
        held(queue, State.TRANSCRIBE, at(5))


@pytest.mark.parametrize("state", ACTIVE)
def test_p50_the_place_in_line_is_the_number_of_claims_until_ones_own(
    queue: SqliteQueue, state: State
) -> None:
    for number in range(12):
        sender = f"token:{number % 3 if number < 9 else 0}"
        hand_in(queue, sender=sender, priority=int(number == 5))
    for before in ACTIVE[: ACTIVE.index(state)]:
        work_through(queue, before)
    jobs = [job for job in map(queue.get, _ids(queue)) if job.state is state]
    places = {job.id: queue.position(job) for job in jobs}
    order = [job.id for job in work_through(queue, state)]
    assert places == {job_id: number for number, job_id in enumerate(order, 1)}


def _ids(queue: SqliteQueue) -> list[str]:
    return [job.id for job in queue.page(JobFilter(), before=None, limit=100).jobs]


def test_hazard_29_every_operation_is_asked_for_before_any_is_asked_again(
    queue: SqliteQueue,
) -> None:
    # A check takes so long that not all of them fit between two checks of the first.
    operations = [hand_in(queue).id for _ in range(60)]
    for state in (State.CREATED, State.CONVERTED):
        work_through(queue, state)
    asked: list[str] = []
    for second in range(180):
        taken = held(queue, State.TRANSCRIBE, at(second))
        asked.append(taken.job.id)
        assert queue.snooze(taken, 5, at(second))
    for begin in range(0, 180, 60):
        assert sorted(asked[begin : begin + 60]) == sorted(operations)


def test_hazard_29_a_newcomer_is_asked_for_at_once_among_old_operations(
    queue: SqliteQueue,
) -> None:
    for _ in range(5):
        hand_in(queue, sender="token:a")
    for state in (State.CREATED, State.CONVERTED):
        work_through(queue, state)
    for second in range(100):
        assert queue.snooze(held(queue, State.TRANSCRIBE, at(second)), 5, at(second))
    late = hand_in(queue, sender="token:a")
    for state in (State.CREATED, State.CONVERTED):
        work_through(queue, state)
    asked = []
    for second in range(100, 106):
        taken = held(queue, State.TRANSCRIBE, at(second))
        asked.append(taken.job.id)
        queue.snooze(taken, 5, at(second))
    assert late.id in asked


def test_hazard_28_a_storm_of_ended_pauses_is_let_in_by_the_hundred(
    queue: SqliteQueue, database: Database
) -> None:
    for _ in range(250):
        hand_in(queue)
    with database.transaction() as connection:
        connection.execute("UPDATE transcribe_jobs SET delay_time = '2026-03-01 12:00:00.000Z'")
    held(queue, now=at(1))
    with database.read() as connection:
        waiting = "SELECT count(*) FROM transcribe_jobs WHERE delay_time IS NOT NULL"
        assert connection.execute(waiting).fetchone()[0] == 150
    for _ in range(249):
        held(queue, now=at(1))
