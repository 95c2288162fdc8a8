"""The queue on SQLite: the verbs of port.py, each one short transaction of named statements."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from app.clock import later, new_id, new_token, to_text
from app.db import Connection, Database
from app.errors import AppError
from app.job import ACTIVE, RETRY_CAP_SECONDS, STEP_OF, Job, Piece, State, backoff_seconds
from app.queue import rows
from app.queue.owner import OwnerVerbs
from app.queue.port import (
    Buried,
    Claim,
    Converted,
    Enqueued,
    NewJob,
    Nothing,
    Recognized,
    Started,
    StepResult,
)
from app.queue.records import jobs, note, note_end, one_job, owe_reply, run, write_held

_LOSSES_AT_ONCE = 2
"""So often a job whose worker was lost is ready again at once. From then on it may be what ends its
workers, and pauses as after a failure: at the head of the line it would let nobody else through."""

_NEWEST = 2**62
"""A cursor beyond every seq: a list from it starts at the newest job."""


class _LostError(Exception):
    """The claim is another's by now: undoes the transaction, and the verb answers False."""


class SqliteQueue(OwnerVerbs):
    """The Queue of app.queue.port on one SQLite file.

    pause_cap_seconds is the longest pause that retry() or snooze() is given: a pause that ends
    later than that from now was set before the clock stepped back, and counts as ended. Without
    takes_turns the order is that of acceptance alone (P50). on_ready is told, after the commit,
    that a job may have become ready or that a running one may have lost its claim (P40).
    """

    def __init__(
        self,
        database: Database,
        pause_cap_seconds: float = RETRY_CAP_SECONDS,
        *,
        takes_turns: bool = True,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(database, on_ready)
        self._pause_cap_seconds = pause_cap_seconds
        self._takes_turns = takes_turns
        # Where the last claim found a job, the next look is made inside the transaction: the
        # writing connection remembers what it has read, and the reading one would read it anew.
        self._busy: set[State] = set()

    def enqueue(self, new: NewJob, now: datetime) -> Enqueued:
        """See port.Queue."""
        with self._database.transaction() as connection:
            standing = _standing(connection, new)
            if standing:
                return standing
            run(connection, "add_file", vars(new.file) | {"now": to_text(now)})
            values = vars(new) | {"id": new_id(), "file": new.file.id, "now": to_text(now)}
            job = one_job(connection, "add_job", values | self._place(connection, new))
            assert job is not None  # noqa: S101 - an INSERT that did not raise returns its row
            note(connection, job, "accepted", now)
        self._on_ready()
        return Enqueued(job, created=True)

    def claim(
        self, state: State, *, worker: str, lease_seconds: float, max_attempts: int, now: datetime
    ) -> Claim | Buried | Nothing:
        """See port.Queue."""
        token = new_token()
        values = {
            "state": state,
            "step": STEP_OF[state],
            "now": to_text(now),
            "horizon": to_text(later(now, self._pause_cap_seconds)),
            "lease_start": to_text(later(now, -lease_seconds)),
            "acquisition_id": token,
            "worker": worker,
        }
        if state not in self._busy:
            with self._database.read() as connection:
                if not _work_at_hand(connection, values):
                    return Nothing(f"no job is ready in {state}")
        self._busy.discard(state)
        with self._database.transaction() as connection:
            work = _work_at_hand(connection, values)
            if not work:
                return Nothing(f"another worker took the last job in {state}")
            _, has_ended_pauses, has_ended_leases = work
            if has_ended_pauses:
                run(connection, "end_pauses", values)
            if has_ended_leases:
                for lost in jobs(connection, "end_leases", values):
                    note(connection, lost, "lease_ended", now, error_code=lost.error_code)
            job = one_job(connection, "claim", values)
            if job is None:
                return Nothing(f"another worker took the last job in {state}")
            if job.attempts > max_attempts:
                return Buried(_bury(connection, job, now))
            if job.state is ACTIVE[-1] and not job.polls:
                # By the last step: what runs ahead in the first ones has not been served yet.
                run(connection, "advance_turns", {"turn": job.turn})
        self._busy.add(state)
        return Claim(job, STEP_OF[job.state], token, worker, now)

    def report(self, claim: Claim, progress: float | None, now: datetime) -> bool:
        """See port.Queue."""
        with self._database.transaction() as connection:
            return write_held(connection, "report", claim, now, {"progress": progress})

    def save_piece(self, claim: Claim, piece: Piece, progress: float, now: datetime) -> bool:
        """See port.Queue."""
        with self._database.transaction() as connection:
            held = write_held(connection, "report", claim, now, {"progress": progress})
            if held:
                run(
                    connection,
                    "add_piece",
                    vars(piece)
                    | {
                        "id": claim.job.id,
                        "segments": rows.segments_json(piece.segments),
                        "now": to_text(now),
                    },
                )
            return held

    def intend(self, claim: Claim, intent: str, now: datetime) -> bool:
        """See port.Queue."""
        with self._database.transaction() as connection:
            return write_held(connection, "intend", claim, now, {"recognition_intent": intent})

    def finish(self, claim: Claim, result: StepResult, now: datetime) -> bool:
        """See port.Queue."""
        try:
            with self._database.transaction() as connection:
                if isinstance(result, Converted):
                    _finish_convert(connection, claim, result, now)
                elif isinstance(result, Started):
                    _finish_recognize(connection, claim, result, now)
                else:
                    _finish_check(connection, claim, result, now)
                note_end(connection, claim, "success", now)
        except _LostError:
            return False
        self._on_ready()
        return True

    def snooze(self, claim: Claim, delay_seconds: float, now: datetime) -> bool:
        """See port.Queue."""
        job = claim.job
        values = {
            "delay_time": to_text(later(now, delay_seconds)),
            "state": job.state,
            "priority": job.priority,
        }
        with self._database.transaction() as connection:
            return write_held(connection, "snooze", claim, now, values)

    def retry(self, claim: Claim, error: AppError, delay_seconds: float, now: datetime) -> bool:
        """See port.Queue."""
        values = _error(error) | {"delay_time": to_text(later(now, delay_seconds))}
        with self._database.transaction() as connection:
            held = write_held(connection, "retry", claim, now, values)
            if held:
                note_end(connection, claim, "failure", now, error)
            return held

    def fail(self, claim: Claim, error: AppError, now: datetime) -> bool:
        """See port.Queue."""
        with self._database.transaction() as connection:
            held = write_held(connection, "fail", claim, now, _error(error))
            if held:
                note_end(connection, claim, "failed", now, error)
                owe_reply(connection, claim.job.id, now)
            return held

    def release(self, claim: Claim, now: datetime) -> bool:
        """See port.Queue."""
        with self._database.transaction() as connection:
            held = write_held(connection, "release", claim, now)
            if held:
                note_end(connection, claim, "released", now)
        self._on_ready()
        return held

    def release_lost(self, is_gone: Callable[[str], bool], now: datetime) -> Sequence[Job]:
        """See port.Queue."""
        with self._database.read() as connection:
            holders = [row["worker"] for row in run(connection, "holders", {})]
        # Asking whether a worker lives touches files, so it happens outside the transaction.
        gone = [worker for worker in holders if is_gone(worker)]
        released: list[Job] = []
        for worker in gone:
            with self._database.transaction() as connection:
                values = {"worker": worker, "now": to_text(now)}
                for job in jobs(connection, "release_worker", values):
                    note(
                        connection,
                        job,
                        "worker_lost",
                        now,
                        worker=worker,
                        error_code=job.error_code,
                    )
                    self._pause_lost(connection, job, now)
                    released.append(job)
        if released:
            self._on_ready()
        return released

    def _pause_lost(self, connection: Connection, job: Job, now: datetime) -> None:
        if job.attempts > _LOSSES_AT_ONCE:
            pause = backoff_seconds(job.attempts, self._pause_cap_seconds)
            values = {"id": job.id, "delay_time": to_text(later(now, pause)), "now": to_text(now)}
            run(connection, "pause_lost", values)

    def _place(self, connection: Connection, new: NewJob) -> dict[str, int]:
        """A new job's place in line (P50)."""
        if not self._takes_turns:
            return {"priority": 0, "turn": 0}
        row = run(connection, "next_turn", {"sender": new.sender}).fetchall()[0]
        return {"priority": new.priority, "turn": row["turn"]}


def _work_at_hand(connection: Connection, values: dict[str, Any]) -> tuple[bool, ...]:
    """Whether any job is ready, any pause and any lease has ended; empty when there is nothing."""
    is_on, *work = run(connection, "work_at_hand", values).fetchone()
    return tuple(map(bool, work)) if is_on and any(work) else ()


def _standing(connection: Connection, new: NewJob) -> Enqueued | None:
    if new.dedupe_key:
        job = one_job(connection, "job_by_key", {"dedupe_key": new.dedupe_key})
        if job and job.dedupe_digest != new.dedupe_digest:
            raise AppError("idempotency_conflict")
        if job:
            return Enqueued(job, created=False)
    if new.reuse_same_bytes and new.file.sha256:
        values = {"sha256": new.file.sha256, "sender": new.sender, "language": new.language}
        job = one_job(connection, "job_by_bytes", values)
        if job:
            return Enqueued(job, created=False, same_bytes=True)
    return None


def _bury(connection: Connection, claimed: Job, now: datetime) -> Job:
    values = {"id": claimed.id, "acquisition_id": claimed.acquisition_id, "now": to_text(now)}
    job = one_job(connection, "bury", values)
    assert job is not None  # noqa: S101 - claimed in this very transaction
    note(
        connection,
        job,
        "dead",
        now,
        worker=claimed.worker,
        error_code=job.error_code,
        error_text=job.error_text,
    )
    owe_reply(connection, job.id, now)
    return job


def _finish_convert(connection: Connection, claim: Claim, result: Converted, now: datetime) -> None:
    run(connection, "add_file", vars(result.file) | {"now": to_text(now)})
    values = {
        "file": result.file.id,
        "duration_seconds": result.duration_seconds,
        "source_is_playable": result.source_is_playable,
    }
    _must_hold(connection, "finish_convert", claim, now, values)


def _finish_recognize(connection: Connection, claim: Claim, result: Started, now: datetime) -> None:
    delay = result.check_delay_seconds
    values = {
        "recognition_op_id": result.recognition_op_id,
        "recognizer": result.recognizer,
        "delay_time": to_text(later(now, delay)) if delay > 0 else None,
    }
    _must_hold(connection, "finish_recognize", claim, now, values)


def _finish_check(connection: Connection, claim: Claim, result: Recognized, now: datetime) -> None:
    values = {"detected_language": result.detected_language}
    _must_hold(connection, "finish_check", claim, now, values)
    text = {
        "id": claim.job.id,
        "text": result.transcript.text,
        "segments": rows.segments_json(result.transcript.segments),
        "now": to_text(now),
    }
    run(connection, "put_transcript", text)
    run(connection, "drop_pieces", {"id": claim.job.id})
    owe_reply(connection, claim.job.id, now)


def _must_hold(
    connection: Connection, statement: str, claim: Claim, now: datetime, values: dict[str, Any]
) -> None:
    if not write_held(connection, statement, claim, now, values):
        raise _LostError


def _error(error: AppError) -> dict[str, Any]:
    return {"error_code": error.code, "error_text": error.detail or None}
