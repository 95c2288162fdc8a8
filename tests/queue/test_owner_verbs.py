"""The owner's verbs in every state: what each does, or why it cannot (CQ02, CQ20)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.db import Database
from app.errors import AppError
from app.job import ACTIVE, STEP_OF, Job, State, Step
from app.liveness import is_gone
from app.queue.port import Buried, Claim, JobFilter, Nothing, Queue
from app.queue.sqlite import SqliteQueue
from tests.crew import Crew
from tests.queue import holders
from tests.queue.hands import (
    LEASE,
    MAX_ATTEMPTS,
    RESULTS,
    START,
    at,
    claim,
    hand_in,
    held,
    started,
    stored_file,
    to_state,
)

BIN = 7 * 86400.0
NOW = at(LEASE + 100)
"""When the owner acts: by then a lease that was never renewed is over."""

WAITING = "waiting"
RUNNING = "running"
LEASE_OVER = "running, its lease over"
KILLED = "running, its worker killed"
PAUSING = "pausing after a failure"
ACTIVE_WAYS = (WAITING, RUNNING, LEASE_OVER, KILLED, PAUSING)

AT_AN_ENGINE = "transcribe: at an outside engine"
DONE = "done"
FAILED = "failed"
CANCELLED = "failed: cancelled"
DEAD = "dead"
BINNED = "in the bin"
BINNED_TOO_LONG = "in the bin, its time over"

ACTIVE_PLACES = [f"{state}: {way}" for state in ACTIVE for way in ACTIVE_WAYS] + [AT_AN_ENGINE]

VERBS: dict[str, Callable[[Queue, str], Job]] = {
    "revive": lambda queue, job_id: queue.revive(job_id, NOW),
    "cancel": lambda queue, job_id: queue.cancel(job_id, NOW),
    "delete": lambda queue, job_id: queue.delete(job_id, NOW),
    "undelete": lambda queue, job_id: queue.undelete(job_id, BIN, NOW),
}

TABLE: dict[str, dict[str, str]] = {
    **{
        place: {
            "revive": "wrong_state",
            "cancel": "cancelled",
            "delete": "in the bin, cancelled",
            "undelete": "wrong_state",
        }
        for place in ACTIVE_PLACES
    },
    DONE: {
        "revive": "wrong_state",
        "cancel": "wrong_state",
        "delete": "in the bin",
        "undelete": "wrong_state",
    },
    **{
        place: {
            "revive": "at work again",
            "cancel": "wrong_state",
            "delete": "in the bin",
            "undelete": "wrong_state",
        }
        for place in (FAILED, CANCELLED, DEAD)
    },
    BINNED: {
        "revive": "not_found",
        "cancel": "not_found",
        "delete": "not_found",
        "undelete": "as it was",
    },
    BINNED_TOO_LONG: dict.fromkeys(VERBS, "not_found"),
}
"""What each verb comes to wherever a job may be: an error's code, or what it did."""


@dataclass
class Situation:
    """A job brought to its place, and the claim that somebody believes to have on it."""

    job: Job
    claim: Claim | None = None


def bring(queue: SqliteQueue, data_dir: Path, place: str) -> Situation:
    if place in PLACES:
        return PLACES[place](queue)
    if place == AT_AN_ENGINE:
        job = to_state(queue, State.CONVERTED)
        assert queue.finish(held(queue, State.CONVERTED), started(2 * LEASE), START)
        return Situation(queue.get(job.id))
    state, way = place.split(": ")
    job = to_state(queue, State(state))
    return _hold(queue, data_dir, job, way)


def _hold(queue: SqliteQueue, data_dir: Path, job: Job, way: str) -> Situation:
    if way == WAITING:
        return Situation(job)
    if way == KILLED:
        return _killed(data_dir, job)
    taken = held(queue, job.state)
    if way == RUNNING:
        assert queue.report(taken, 0.4, NOW)
        return Situation(queue.get(job.id), taken)
    if way == PAUSING:
        assert queue.retry(taken, AppError("engine_silent"), 2 * LEASE, START)
    return Situation(queue.get(job.id), taken)


def _killed(data_dir: Path, job: Job) -> Situation:
    with Crew(1) as crew:
        crew.start(0, holders.hold, data_dir, job.state)
        taken = crew.answer(0)
        assert isinstance(taken, Claim)
        assert not is_gone(data_dir, taken.worker)
        crew.kill(0)
    assert is_gone(data_dir, taken.worker)
    return Situation(taken.job, taken)


def _done(queue: SqliteQueue) -> Situation:
    job = to_state(queue, State.TRANSCRIBE)
    taken = held(queue, State.TRANSCRIBE)
    assert queue.finish(taken, RESULTS[State.TRANSCRIBE](), START)
    return Situation(queue.get(job.id), taken)


def _failed(queue: SqliteQueue) -> Situation:
    job = to_state(queue, State.CONVERTED)
    taken = held(queue, State.CONVERTED)
    assert queue.fail(taken, AppError("recognizer_refused"), START)
    return Situation(queue.get(job.id), taken)


def _cancelled(queue: SqliteQueue) -> Situation:
    job = to_state(queue, State.CONVERTED)
    taken = held(queue, State.CONVERTED)
    return Situation(queue.cancel(job.id, START), taken)


def _dead(queue: SqliteQueue) -> Situation:
    to_state(queue, State.CONVERTED)
    for attempt in range(MAX_ATTEMPTS):
        taken = held(queue, State.CONVERTED, at(attempt))
        assert queue.retry(taken, AppError("engine_silent"), 0, at(attempt))
    buried = claim(queue, State.CONVERTED, at(MAX_ATTEMPTS))
    assert isinstance(buried, Buried)
    return Situation(buried.job, taken)


def _binned(queue: SqliteQueue) -> Situation:
    situation = _failed(queue)
    return Situation(queue.delete(situation.job.id, START), situation.claim)


def _binned_too_long(queue: SqliteQueue) -> Situation:
    situation = _failed(queue)
    return Situation(queue.delete(situation.job.id, at(-BIN)), situation.claim)


PLACES: dict[str, Callable[[SqliteQueue], Situation]] = {
    DONE: _done,
    FAILED: _failed,
    CANCELLED: _cancelled,
    DEAD: _dead,
    BINNED: _binned,
    BINNED_TOO_LONG: _binned_too_long,
}


def outcome(before: Job, after: Job) -> str:
    """What a verb did, by the row it gave."""
    assert not after.is_running
    assert after.delay_time is None
    if after.deleted and before.state.is_active:
        assert (after.state, after.error_code) == (State.FAILED, "cancelled")
        assert after.ended_from is before.state
        return "in the bin, cancelled"
    if after.deleted:
        assert after.state is before.state
        return "in the bin"
    if before.deleted:
        assert (after.state, after.error_code) == (before.state, before.error_code)
        return "as it was"
    if after.state.is_active:
        assert (after.state, after.attempts) == (before.ended_from, 0)
        return "at work again"
    assert (after.state, after.error_code) == (State.FAILED, "cancelled")
    assert after.ended_from is before.state
    return "cancelled"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("place", TABLE)
def test_cq02_each_verb_in_each_state_does_its_work_or_says_why_not(
    queue: SqliteQueue, tmp_path: Path, place: str, verb: str
) -> None:
    before = bring(queue, tmp_path, place)
    row = queue.find(before.job.id) or queue.find_binned(before.job.id)
    assert row is not None
    try:
        after = VERBS[verb](queue, before.job.id)
    except AppError as error:
        assert error.code == TABLE[place][verb]
        assert (queue.find(row.id) or queue.find_binned(row.id)) == row, "refused, yet changed"
        return
    assert outcome(row, after) == TABLE[place][verb]
    assert (
        queue.events(row.id)[-1].outcome
        in {
            "revive": ["revived"],
            "cancel": ["cancelled"],
            "delete": ["deleted"],
            "undelete": ["undeleted"],
        }[verb]
    )
    # Whoever held it has lost it, and can write nothing any more.
    if before.claim:
        assert not queue.report(before.claim, 0.9, NOW)
        assert not queue.fail(before.claim, AppError("internal"), NOW)
        assert not queue.finish(before.claim, RESULTS[before.claim.job.state](), NOW)
        assert (queue.find(row.id) or queue.find_binned(row.id)) == after


@pytest.mark.parametrize("place", [place for place in ACTIVE_PLACES if RUNNING in place])
@pytest.mark.parametrize("verb", ["revive", "undelete"])
def test_cq02_a_refused_verb_takes_no_claim_away(
    queue: SqliteQueue, tmp_path: Path, place: str, verb: str
) -> None:
    before = bring(queue, tmp_path, place)
    assert before.claim
    with pytest.raises(AppError):
        VERBS[verb](queue, before.job.id)
    assert queue.finish(before.claim, RESULTS[before.job.state](), NOW)


@pytest.mark.parametrize("place", [*ACTIVE_PLACES, *PLACES])
def test_cq02_delete_then_back_then_revive_brings_a_job_on_its_way_again(
    queue: SqliteQueue, tmp_path: Path, place: str
) -> None:
    before = bring(queue, tmp_path, place)
    if place == BINNED_TOO_LONG:
        return
    if not before.job.deleted:
        queue.delete(before.job.id, NOW)
    back = queue.undelete(before.job.id, BIN, NOW)
    assert back.deleted is None
    if place == DONE:
        assert queue.transcript(back.id)
        return
    went_on = queue.revive(back.id, NOW)
    assert held(queue, went_on.state, NOW).job.id == back.id


@pytest.mark.parametrize("place", [*ACTIVE_PLACES, DONE, FAILED, CANCELLED, DEAD])
def test_cq20_a_deleted_job_is_in_no_list_no_count_and_no_line(
    queue: SqliteQueue, tmp_path: Path, place: str
) -> None:
    job = bring(queue, tmp_path, place).job
    queue.delete(job.id, NOW)
    for chosen in (JobFilter(), *(JobFilter(states=(state,)) for state in State)):
        assert not queue.page(chosen, before=None, limit=10).jobs
    assert [one.id for one in queue.page(JobFilter(is_deleted=True), before=None, limit=10).jobs]
    assert not any(queue.counts().values())
    assert not queue.oldest_waiting()
    for state in ACTIVE:
        assert isinstance(claim(queue, state, at(10 * LEASE)), Nothing)
    assert queue.find(job.id) is None
    with pytest.raises(AppError, match="nothing here"):
        queue.get(job.id)
    found = queue.find_binned(job.id)
    assert found is not None and found.deleted == NOW


@pytest.mark.parametrize("place", [*ACTIVE_PLACES, DONE, FAILED, DEAD])
def test_cq20_its_files_are_shown_to_nobody_until_it_is_back(
    queue: SqliteQueue, tmp_path: Path, place: str
) -> None:
    job = bring(queue, tmp_path, place).job
    files = queue.files_of(job.id)
    assert {queue.shown_file(file.id) for file in files} == set(files)
    queue.delete(job.id, NOW)
    for file in files:
        with pytest.raises(AppError, match="nothing here"):
            queue.shown_file(file.id)
    queue.undelete(job.id, BIN, NOW)
    assert {queue.shown_file(file.id) for file in files} == set(files)


def test_s31_the_bin_keeps_a_job_for_its_time_and_a_little_longer(queue: SqliteQueue) -> None:
    job = queue.delete(_failed(queue).job.id, START)
    assert not queue.binned(BIN, 10, at(BIN))
    assert not queue.erase(job.id, BIN, at(BIN))
    with pytest.raises(AppError, match="nothing here"):
        queue.undelete(job.id, BIN, at(BIN))
    later = at(BIN + 61)
    assert [one.id for one in queue.binned(BIN, 10, later)] == [job.id]
    assert queue.erase(job.id, BIN, later)
    assert not queue.erase(job.id, BIN, later)
    assert queue.find_binned(job.id) is None


def test_s31_erasing_leaves_no_row_of_the_job(queue: SqliteQueue, database: Database) -> None:
    kept = _done(queue).job
    gone = queue.delete(_done(queue).job.id, START)
    assert queue.erase(gone.id, BIN, at(BIN + 61))
    with database.read() as connection:
        for table, column in {
            "transcribe_jobs": "id",
            "transcripts": "job",
            "job_events": "job",
            "replies": "job",
        }.items():
            found = connection.execute(f"SELECT DISTINCT {column} AS job FROM {table}").fetchall()
            assert {row["job"] for row in found} <= {kept.id}, table
        files = connection.execute("SELECT id FROM files").fetchall()
    assert {row["id"] for row in files} == {file.id for file in queue.files_of(kept.id)}


def test_cu06_the_same_key_gives_the_job_in_the_bin_until_it_is_erased(
    queue: SqliteQueue,
) -> None:
    first = hand_in(queue, dedupe_key="http:one:k", dedupe_digest="d")
    queue.delete(first.id, START)
    assert hand_in(queue, dedupe_key="http:one:k", dedupe_digest="d").id == first.id
    assert queue.erase(first.id, BIN, at(BIN + 61))
    assert hand_in(queue, dedupe_key="http:one:k", dedupe_digest="d").id != first.id


def test_cu06_the_same_bytes_are_not_found_in_the_bin(queue: SqliteQueue) -> None:
    def give() -> Job:
        file = stored_file(sha256="a" * 64)
        return hand_in(queue, file=file, sender="owner:one", reuse_same_bytes=True)

    first = give()
    for state in ACTIVE:
        assert queue.finish(held(queue, state), RESULTS[state](), START)
    assert give().id == first.id
    queue.delete(first.id, START)
    assert give().id != first.id


@pytest.mark.parametrize("state", ACTIVE)
def test_a_paused_step_hands_out_nothing_and_its_running_jobs_go_on(
    queue: SqliteQueue, state: State
) -> None:
    to_state(queue, state)
    running = held(queue, state)
    waiting = hand_in(queue) if state is State.CREATED else None
    assert queue.pause_step(STEP_OF[state], at(1))
    assert queue.paused_steps() == {STEP_OF[state]: at(1)}
    assert queue.report(running, 0.5, at(2))
    assert queue.finish(running, RESULTS[state](), at(3))
    assert isinstance(claim(queue, state, at(3)), Nothing)
    assert queue.resume_step(STEP_OF[state])
    assert queue.paused_steps() == {}
    if waiting:
        assert held(queue, state, at(4)).job.id == waiting.id


def test_a_paused_step_takes_over_no_ended_lease_and_no_ended_pause(queue: SqliteQueue) -> None:
    hand_in(queue)
    held(queue)
    hand_in(queue)
    assert queue.retry(held(queue), AppError("disk_full"), 1, START)
    queue.pause_step(Step.CONVERT, START)
    assert isinstance(claim(queue, now=at(2 * LEASE)), Nothing)
    queue.resume_step(Step.CONVERT)
    assert isinstance(claim(queue, now=at(2 * LEASE)), Claim)


def test_p50_waiting_jobs_keep_their_order_through_a_pause(queue: SqliteQueue) -> None:
    jobs = [hand_in(queue) for _ in range(4)]
    queue.pause_step(Step.CONVERT, START)
    assert [queue.position(job) for job in jobs] == [1, 2, 3, 4]
    queue.resume_step(Step.CONVERT)
    assert [held(queue).job.id for _ in jobs] == [job.id for job in jobs]


def test_a_pause_stops_its_own_step_alone(queue: SqliteQueue) -> None:
    queue.pause_step(Step.RECOGNIZE, START)
    job = to_state(queue, State.CONVERTED)
    assert isinstance(claim(queue, State.CONVERTED), Nothing)
    assert queue.cancel(job.id, START).error_code == "cancelled"


def test_pausing_and_resuming_twice_says_so_and_keeps_the_first_moment(
    queue: SqliteQueue,
) -> None:
    assert queue.pause_step(Step.CHECK, at(1))
    assert not queue.pause_step(Step.CHECK, at(2))
    assert queue.paused_steps() == {Step.CHECK: at(1)}
    assert queue.resume_step(Step.CHECK)
    assert not queue.resume_step(Step.CHECK)


def test_a_pause_outlives_the_process_that_set_it(queue: SqliteQueue, database: Database) -> None:
    queue.pause_step(Step.CONVERT, START)
    hand_in(queue)
    another = SqliteQueue(database)
    assert isinstance(claim(another), Nothing)
