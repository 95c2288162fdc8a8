"""The queue's contract, verb by verb, on each engine."""

import pytest

from app.clock import later
from app.errors import AppError
from app.job import ACTIVE, Source, State, Step, backoff_seconds
from app.queue.port import Buried, Claim, JobFilter, Nothing
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import (
    LEASE,
    MAX_ATTEMPTS,
    RESULTS,
    at,
    claim,
    converted,
    hand_in,
    held,
    piece,
    recognized,
    started,
    stored_file,
    to_state,
)

Queue = SqliteQueue
CRASH = AppError("convert_crashed", "signal 11")
VERDICT = AppError("no_audio_track")


def test_p01_an_empty_state_gives_a_value_and_changes_nothing(queue: Queue) -> None:
    hand_in(queue)
    assert isinstance(claim(queue, State.TRANSCRIBE), Nothing)
    assert queue.counts()[State.CREATED] == 1


@pytest.mark.parametrize("state", ACTIVE)
def test_p05_a_claim_takes_the_job_and_gives_its_row(queue: Queue, state: State) -> None:
    job = to_state(queue, state)
    taken = held(queue, state, at(1), worker="worker-two")
    assert taken.job.id == job.id
    assert taken.step is taken.job.step
    row = queue.get(job.id)
    assert row == taken.job
    assert (row.acquisition_id, row.worker) == (taken.acquisition_id, "worker-two")
    assert (row.acquire_time, row.attempts) == (at(1), 1)


def test_p06_jobs_leave_in_the_order_they_came(queue: Queue) -> None:
    # The third is accepted after the clock stepped back: acceptance decides, not the clock.
    accepted = [hand_in(queue, now).id for now in (at(0), at(0), at(-3600), at(5))]
    assert [held(queue, now=at(10)).job.id for _ in accepted] == accepted


def test_p07_a_claimed_job_is_not_handed_out_within_its_lease(queue: Queue) -> None:
    hand_in(queue)
    held(queue)
    assert isinstance(claim(queue, now=at(LEASE - 0.001)), Nothing)


@pytest.mark.parametrize("state", ACTIVE)
def test_p08_hazard_01_only_the_holder_writes_the_result(queue: Queue, state: State) -> None:
    job = to_state(queue, state)
    first = held(queue, state)
    second = held(queue, state, at(LEASE))
    before = queue.get(job.id)
    assert not queue.finish(first, RESULTS[state](), at(LEASE + 1))
    assert not queue.report(first, 0.5, at(LEASE + 1))
    assert not queue.save_piece(first, piece(), 0.5, at(LEASE + 1))
    assert not queue.snooze(first, 5, at(LEASE + 1))
    assert not queue.retry(first, CRASH, 1, at(LEASE + 1))
    assert not queue.fail(first, VERDICT, at(LEASE + 1))
    assert not queue.release(first, at(LEASE + 1))
    assert queue.get(job.id) == before
    assert queue.pieces(job.id, "engine-a") == []
    assert queue.transcript(job.id) is None
    assert queue.finish(second, RESULTS[state](), at(LEASE + 2))


def test_p08_hazard_02_the_same_worker_that_lost_a_job_and_got_it_again_has_a_new_claim(
    queue: Queue,
) -> None:
    hand_in(queue)
    first = held(queue, worker="worker-one")
    second = held(queue, now=at(LEASE), worker="worker-one")
    assert first.acquisition_id != second.acquisition_id
    assert not queue.finish(first, converted(), at(LEASE))
    assert queue.finish(second, converted(), at(LEASE))


def test_p08_a_lost_convert_leaves_no_file_row(queue: Queue) -> None:
    hand_in(queue)
    first = held(queue)
    held(queue, now=at(LEASE))
    result = converted()
    assert not queue.finish(first, result, at(LEASE))
    with pytest.raises(AppError, match="nothing here"):
        queue.file(result.file.id)


@pytest.mark.parametrize("state", ACTIVE)
def test_p09_hazard_03_a_step_leaves_the_columns_of_others_alone(
    queue: Queue, database: object, state: State
) -> None:
    job = to_state(queue, state)
    taken = held(queue, state)
    with database.transaction() as connection:  # type: ignore[attr-defined]
        connection.execute(
            "UPDATE transcribe_jobs SET display_name = 'renamed by the owner', language = 'ru'"
        )
    assert queue.finish(taken, RESULTS[state](), at(1))
    row = queue.get(job.id)
    assert (row.display_name, row.language) == ("renamed by the owner", "ru")


def test_p10_an_abandoned_job_comes_back_when_its_lease_ends(queue: Queue) -> None:
    job = hand_in(queue)
    held(queue, now=at(0))
    again = held(queue, now=at(LEASE))
    assert again.job.id == job.id
    assert again.job.attempts == 2
    assert again.job.error_code == "lease_ended"
    assert [e.outcome for e in queue.events(job.id)] == ["accepted", "lease_ended"]


def test_p11_the_lease_is_the_steps_own(queue: Queue) -> None:
    to_state(queue, State.TRANSCRIBE)
    held(queue, State.TRANSCRIBE, at(0))
    assert isinstance(claim(queue, State.TRANSCRIBE, at(3599), lease=3600), Nothing)
    assert isinstance(claim(queue, State.TRANSCRIBE, at(3600), lease=3600), Claim)


@pytest.mark.parametrize("state", ACTIVE)
def test_p13_attempts_grow_at_each_claim_and_fall_to_zero_without_failure(
    queue: Queue, state: State
) -> None:
    job = to_state(queue, state)
    for attempt in (1, 2, 3):
        taken = held(queue, state, at(attempt * 100))
        assert taken.job.attempts == attempt
        assert queue.retry(taken, CRASH, 1, at(attempt * 100))
        assert queue.get(job.id).attempts == attempt
    assert queue.finish(held(queue, state, at(400)), RESULTS[state](), at(400))
    assert queue.get(job.id).attempts == 0


def test_p14_the_claim_beyond_the_limit_buries_the_job(queue: Queue) -> None:
    job = hand_in(queue)
    for n in range(MAX_ATTEMPTS):
        assert queue.retry(held(queue, now=at(n * 400)), CRASH, 1, at(n * 400))
    buried = claim(queue, now=at(5000))
    assert isinstance(buried, Buried)
    assert buried.job.id == job.id
    row = queue.get(job.id)
    assert (row.state, row.ended_from) == (State.DEAD, State.CREATED)
    assert (row.error_code, row.error_text) == ("convert_crashed", "signal 11")
    assert isinstance(claim(queue, now=at(9000)), Nothing)
    assert queue.events(job.id)[-1].outcome == "dead"


def test_p14_hazard_17_a_job_that_takes_its_worker_down_each_time_dies_as_well(
    queue: Queue,
) -> None:
    job = hand_in(queue)
    for n in range(MAX_ATTEMPTS):
        held(queue, now=at(100 * n))
        lost = queue.release_lost(lambda worker: True, at(100 * n))
        assert [one.id for one in lost] == [job.id]
    assert isinstance(claim(queue, now=at(1000)), Buried)
    assert queue.get(job.id).error_code == "worker_lost"


def test_p41_cq06_a_job_that_lost_its_worker_twice_is_back_at_once_and_then_pauses(
    queue: Queue,
) -> None:
    """It may be what ends its workers: without a pause nobody behind it would ever be served."""
    job, moment = hand_in(queue), at(0)
    pauses = []
    for _ in range(MAX_ATTEMPTS):
        assert held(queue, now=moment).job.id == job.id
        queue.release_lost(lambda worker: True, moment)
        due = queue.get(job.id).delay_time
        pauses.append((due - moment).total_seconds() if due else 0)
        moment = due or moment
    assert pauses == [0, 0, 4, 8, 16]
    behind = hand_in(queue, at(0))
    assert held(queue, now=later(moment, -0.001)).job.id == behind.id


@pytest.mark.parametrize("state", ACTIVE)
def test_p15_revive_returns_a_dead_job_to_where_it_died(queue: Queue, state: State) -> None:
    job = to_state(queue, state)
    held(queue, state)
    queue.release_lost(lambda worker: True, at(1))
    assert isinstance(claim(queue, state, at(2), max_attempts=1), Buried)
    revived = queue.revive(job.id, at(3))
    assert (revived.state, revived.attempts, revived.ended_from) == (state, 0, None)
    assert revived.error_code is None
    again = held(queue, state, at(3))
    assert (again.job.id, again.job.attempts) == (job.id, 1)
    assert again.job.file == job.file


def test_p15_a_revived_job_waits_for_no_pause(queue: Queue) -> None:
    job = hand_in(queue)
    assert queue.fail(held(queue), VERDICT, at(0))
    queue.revive(job.id, at(0))
    assert held(queue, now=at(0)).job.id == job.id


@pytest.mark.parametrize("state", [*ACTIVE, State.DONE])
def test_p15_only_an_ended_failure_can_be_revived(queue: Queue, state: State) -> None:
    job = to_state(queue, State.TRANSCRIBE if state is State.DONE else state)
    if state is State.DONE:
        assert queue.finish(held(queue, State.TRANSCRIBE), recognized(), at(1))
    with pytest.raises(AppError) as refused:
        queue.revive(job.id, at(2))
    assert refused.value.code == "wrong_state"
    assert queue.get(job.id).state is state


def test_p16_failed_and_dead_owe_the_sender_a_reply_and_a_retry_owes_none(
    queue: Queue, database: object
) -> None:
    def replies() -> list[tuple[str, str]]:
        with database.read() as connection:  # type: ignore[attr-defined]
            found = connection.execute("SELECT job, verdict FROM replies ORDER BY id")
            return [tuple(row) for row in found]

    failing = hand_in(queue, source=Source.TELEGRAM, tg_chat_id=7, tg_reply_message_id=8)
    taken = held(queue)
    assert queue.retry(taken, CRASH, 1, at(0))
    assert replies() == []
    assert queue.fail(held(queue, now=at(2)), VERDICT, at(2))
    assert replies() == [(failing.id, "failed")]

    dying = hand_in(queue, source=Source.TELEGRAM, tg_chat_id=7)
    held(queue, now=at(3))
    queue.release_lost(lambda worker: True, at(3))
    assert isinstance(claim(queue, now=at(4), max_attempts=1), Buried)
    assert replies() == [(failing.id, "failed"), (dying.id, "dead")]


def test_p17_a_verdict_and_spent_attempts_are_different_ends(queue: Queue) -> None:
    job = hand_in(queue)
    assert queue.fail(held(queue), VERDICT, at(1))
    row = queue.get(job.id)
    assert (row.state, row.error_code, row.attempts) == (State.FAILED, "no_audio_track", 1)
    assert row.ended_from is State.CREATED
    assert isinstance(claim(queue, now=at(10**6)), Nothing)


def test_p19_passing_states_does_not_come_nearer_to_the_limit(queue: Queue) -> None:
    job = hand_in(queue)
    for state in ACTIVE:
        taken = held(queue, state, max_attempts=1)
        assert queue.finish(taken, RESULTS[state](), at(1))
    row = queue.get(job.id)
    assert (row.state, row.attempts) == (State.DONE, 0)


def test_p20_a_failed_job_waits_for_its_pause_to_end(queue: Queue) -> None:
    hand_in(queue)
    assert queue.retry(held(queue), CRASH, 16, at(100))
    assert isinstance(claim(queue, now=at(115.999)), Nothing)
    assert isinstance(claim(queue, now=at(116)), Claim)


def test_p20_the_pause_doubles_up_to_its_cap() -> None:
    assert [backoff_seconds(n) for n in range(1, 11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert backoff_seconds(10**9) == 300
    with pytest.raises(ValueError, match="never claimed"):
        backoff_seconds(0)


def test_p20_a_paused_job_does_not_hold_up_a_younger_one(queue: Queue) -> None:
    hand_in(queue)
    assert queue.retry(held(queue), CRASH, 60, at(0))
    young = hand_in(queue, at(1))
    assert held(queue, now=at(1)).job.id == young.id


def test_p20_a_job_whose_pause_ended_keeps_its_place_in_line(queue: Queue) -> None:
    old = hand_in(queue)
    assert queue.retry(held(queue), CRASH, 5, at(0))
    hand_in(queue, at(1))
    assert held(queue, now=at(5)).job.id == old.id


def test_p21_waiting_for_an_operation_spends_no_attempts(queue: Queue) -> None:
    job = to_state(queue, State.TRANSCRIBE)
    moment = at(0)
    for _ in range(3 * MAX_ATTEMPTS):
        taken = held(queue, State.TRANSCRIBE, moment)
        assert taken.job.attempts == 1
        assert queue.snooze(taken, 5, moment)
        row = queue.get(job.id)
        assert (row.attempts, row.delay_time) == (0, later(moment, 5))
        assert isinstance(claim(queue, State.TRANSCRIBE, later(moment, 4.999)), Nothing)
        moment = later(moment, 5)


def test_p21_the_first_check_waits_as_long_as_the_engine_asks(queue: Queue) -> None:
    to_state(queue, State.CONVERTED)
    assert queue.finish(held(queue, State.CONVERTED), started(delay=10), at(0))
    assert isinstance(claim(queue, State.TRANSCRIBE, at(9.999)), Nothing)
    assert isinstance(claim(queue, State.TRANSCRIBE, at(10)), Claim)


def test_p25_a_job_from_http_owes_nobody_a_reply(queue: Queue, database: object) -> None:
    to_state(queue, State.TRANSCRIBE)
    assert queue.finish(held(queue, State.TRANSCRIBE), recognized(), at(1))
    with database.read() as connection:  # type: ignore[attr-defined]
        assert connection.execute("SELECT count(*) FROM replies").fetchone()[0] == 0


def test_p41_the_claims_of_a_lost_worker_are_free_at_once(queue: Queue) -> None:
    first, second = hand_in(queue), hand_in(queue)
    held(queue, worker="worker-gone")
    held(queue, worker="worker-live")
    freed = queue.release_lost(lambda worker: worker == "worker-gone", at(1))
    assert [job.id for job in freed] == [first.id]
    again = held(queue, now=at(1))
    assert (again.job.id, again.job.attempts) == (first.id, 2)
    assert queue.get(second.id).worker == "worker-live"


def test_p42_each_attempt_leaves_its_line(queue: Queue) -> None:
    job = hand_in(queue)
    assert queue.retry(held(queue, now=at(1)), CRASH, 1, at(3))
    assert queue.finish(held(queue, now=at(5)), converted(), at(9))
    lines = [(e.outcome, e.step, e.attempt, e.error_code, e.seconds) for e in queue.events(job.id)]
    assert lines == [
        ("accepted", Step.CONVERT, 0, None, None),
        ("failure", Step.CONVERT, 1, "convert_crashed", 2.0),
        ("success", Step.CONVERT, 2, None, 4.0),
    ]


def test_p43_progress_renews_the_lease(queue: Queue) -> None:
    job = hand_in(queue)
    taken = held(queue, now=at(0))
    assert queue.report(taken, 0.25, at(LEASE - 1))
    row = queue.get(job.id)
    assert (row.progress, row.acquire_time) == (0.25, at(LEASE - 1))
    assert isinstance(claim(queue, now=at(LEASE)), Nothing)
    assert isinstance(claim(queue, now=at(2 * LEASE - 1)), Claim)


def test_p44_a_released_job_has_spent_no_attempt_and_is_ready_at_once(queue: Queue) -> None:
    job = hand_in(queue)
    assert queue.retry(held(queue, now=at(0)), CRASH, 1, at(0))
    assert queue.release(held(queue, now=at(1)), at(2))
    assert queue.get(job.id).attempts == 1
    assert held(queue, now=at(2)).job.attempts == 2


def test_p46_hazard_21_the_same_key_gives_the_same_job(queue: Queue) -> None:
    first = hand_in(queue, dedupe_key="http:a:1", dedupe_digest="x")
    again = hand_in(queue, dedupe_key="http:a:1", dedupe_digest="x")
    assert again.id == first.id
    assert queue.counts()[State.CREATED] == 1
    with pytest.raises(AppError) as refused:
        hand_in(queue, dedupe_key="http:a:1", dedupe_digest="y")
    assert refused.value.code == "idempotency_conflict"


def test_cu06_the_same_bytes_are_found_again_for_the_same_sender_only(queue: Queue) -> None:
    def put(sender: str, language: str | None = None) -> str:
        file = stored_file(sha256="a" * 64)
        return hand_in(queue, file=file, sender=sender, language=language, reuse_same_bytes=True).id

    first = put("owner:1")
    assert put("owner:1") == first
    assert put("owner:2") != first
    assert put("owner:1", "ru") != first
    assert queue.fail(held(queue), VERDICT, at(1))
    assert put("owner:1") != first


def test_p47_the_reply_stands_in_the_transaction_that_ends_the_job(
    queue: Queue, database: object
) -> None:
    job = hand_in(queue, source=Source.TELEGRAM, tg_chat_id=7)
    for state in ACTIVE:
        assert queue.finish(held(queue, state), RESULTS[state](), at(1))
    with database.read() as connection:  # type: ignore[attr-defined]
        found = connection.execute("SELECT job, verdict, state, created FROM replies").fetchall()
    assert [tuple(row) for row in found] == [(job.id, "done", "owed", "2026-03-01 12:00:01.000Z")]


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("state", ACTIVE)
def test_p48_hazard_03_cancel_ends_an_active_job_and_its_claim(
    queue: Queue, state: State, running: bool
) -> None:
    job = to_state(queue, state)
    taken = held(queue, state) if running else None
    cancelled = queue.cancel(job.id, at(1))
    assert (cancelled.state, cancelled.error_code) == (State.FAILED, "cancelled")
    assert (cancelled.acquisition_id, cancelled.ended_from) == (None, state)
    if taken:
        assert not queue.finish(taken, RESULTS[state](), at(2))
    assert queue.revive(job.id, at(3)).state is state


def test_p48_an_ended_job_cannot_be_cancelled(queue: Queue) -> None:
    job = hand_in(queue)
    assert queue.fail(held(queue), VERDICT, at(1))
    with pytest.raises(AppError) as refused:
        queue.cancel(job.id, at(2))
    assert refused.value.code == "wrong_state"
    assert queue.get(job.id).error_code == "no_audio_track"


@pytest.mark.parametrize("verb", ["get", "revive", "cancel"])
def test_an_unknown_id_is_not_found(queue: Queue, verb: str) -> None:
    with pytest.raises(AppError) as missing:
        queue.get("x" * 15) if verb == "get" else getattr(queue, verb)("x" * 15, at(0))
    assert missing.value.code == "not_found"


def test_finished_pieces_are_kept_until_the_text_is_written(queue: Queue) -> None:
    job = to_state(queue, State.TRANSCRIBE)
    taken = held(queue, State.TRANSCRIBE)
    for number in (0, 1):
        assert queue.save_piece(taken, piece(number), 0.2, at(number))
    assert queue.pieces(job.id, "engine-a") == [piece(0), piece(1)]
    assert queue.pieces(job.id, "engine-b") == []
    assert queue.get(job.id).progress == 0.2
    queue.release_lost(lambda worker: True, at(2))
    again = held(queue, State.TRANSCRIBE, at(2))
    assert queue.pieces(job.id, "engine-a") == [piece(0), piece(1)]
    assert queue.finish(again, recognized(), at(3))
    assert queue.pieces(job.id, "engine-a") == []
    assert queue.transcript(job.id) == recognized().transcript


def test_q23_hazard_04_a_clock_set_back_hides_no_waiting_job(queue: Queue) -> None:
    ready, paused = hand_in(queue, at(7200)), hand_in(queue, at(7200))
    assert held(queue, now=at(0)).job.id == ready.id
    assert queue.retry(held(queue, now=at(7200)), CRASH, 16, at(7200))
    assert held(queue, now=at(0)).job.id == paused.id


def test_the_list_shows_newest_first_page_by_page(queue: Queue) -> None:
    ids = [hand_in(queue, at(n)).id for n in range(5)]
    assert queue.fail(held(queue), VERDICT, at(9))
    first = queue.page(JobFilter(), before=None, limit=2)
    assert [job.id for job in first.jobs] == ids[:2:-1]
    rest = queue.page(JobFilter(), before=first.next_cursor, limit=10)
    assert [job.id for job in rest.jobs] == ids[2::-1]
    assert rest.next_cursor is None
    failed = queue.page(JobFilter((State.FAILED,)), before=None, limit=10)
    assert [job.id for job in failed.jobs] == ids[:1]
    both = queue.page(JobFilter((State.FAILED, State.CREATED)), before=None, limit=10)
    assert [job.id for job in both.jobs] == ids[::-1]


def test_the_place_in_line_counts_only_those_who_wait(queue: Queue) -> None:
    first, second, third = hand_in(queue), hand_in(queue), hand_in(queue)
    assert queue.position(third) == 3
    held(queue)
    assert queue.position(queue.get(first.id)) is None
    assert queue.position(queue.get(second.id)) == 1
    assert queue.position(queue.get(third.id)) == 2


def test_the_oldest_waiting_job_is_told_by_state(queue: Queue) -> None:
    hand_in(queue, at(3))
    hand_in(queue, at(5))
    assert queue.oldest_waiting() == {State.CREATED: at(3)}
    held(queue)
    assert queue.oldest_waiting() == {State.CREATED: at(5)}
