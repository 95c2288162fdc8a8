"""The queue on SQLite: the verbs of port.py, each one short transaction of named statements."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any

from app.clock import from_text, later, new_id, new_token, to_text
from app.db import Connection, Database
from app.errors import AppError
from app.job import ACTIVE, RETRY_CAP_SECONDS, STEP_OF, Job, Piece, State, StoredFile, Transcript
from app.queue import rows
from app.queue.port import (
    Buried,
    Claim,
    Converted,
    Enqueued,
    JobEvent,
    JobFilter,
    JobPage,
    NewJob,
    Nothing,
    Recognized,
    Started,
    StepResult,
)
from app.queue.records import get, jobs, note, note_end, one_job, owe_reply, run, write_held

_NEWEST = 2**62
"""A cursor beyond every seq: a list from it starts at the newest job."""


class _LostError(Exception):
    """The claim is another's by now: undoes the transaction, and the verb answers False."""


class SqliteQueue:
    """The Queue of app.queue.port on one SQLite file.

    pause_cap_seconds is the longest pause that retry() or snooze() is given: a pause that ends
    later than that from now was set before the clock stepped back, and counts as ended.
    """

    def __init__(self, database: Database, pause_cap_seconds: float = RETRY_CAP_SECONDS) -> None:
        self._database = database
        self._pause_cap_seconds = pause_cap_seconds

    def enqueue(self, new: NewJob, now: datetime) -> Enqueued:
        """See port.Queue."""
        with self._database.transaction() as connection:
            standing = _standing(connection, new)
            if standing:
                return standing
            run(connection, "add_file", asdict(new.file) | {"now": to_text(now)})
            job = one_job(
                connection,
                "add_job",
                asdict(new) | {"id": new_id(), "file": new.file.id, "now": to_text(now)},
            )
            assert job is not None  # noqa: S101 - an INSERT that did not raise returns its row
            note(connection, job, "accepted", now)
            return Enqueued(job, created=True)

    def claim(
        self, state: State, *, worker: str, lease_seconds: float, max_attempts: int, now: datetime
    ) -> Claim | Buried | Nothing:
        """See port.Queue."""
        token = new_token()
        values = {
            "state": state,
            "now": to_text(now),
            "horizon": to_text(later(now, self._pause_cap_seconds)),
            "lease_start": to_text(later(now, -lease_seconds)),
            "acquisition_id": token,
            "worker": worker,
        }
        with self._database.read() as connection:
            if not run(connection, "has_work", values).fetchone()[0]:
                return Nothing(f"no job is ready in {state}")
        with self._database.transaction() as connection:
            run(connection, "end_pauses", values)
            for lost in jobs(connection, "end_leases", values):
                note(connection, lost, "lease_ended", now, error_code=lost.error_code)
            job = one_job(connection, "claim", values)
            if job is None:
                return Nothing(f"another worker took the last job in {state}")
            if job.attempts > max_attempts:
                return Buried(_bury(connection, job, now))
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
                    asdict(piece)
                    | {
                        "id": claim.job.id,
                        "segments": rows.segments_json(piece.segments),
                        "now": to_text(now),
                    },
                )
            return held

    def pieces(self, job_id: str, engine: str) -> Sequence[Piece]:
        """See port.Queue."""
        with self._database.read() as connection:
            found = run(connection, "pieces", {"id": job_id, "engine": engine})
            return [rows.piece(row) for row in found]

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
                return True
        except _LostError:
            return False

    def snooze(self, claim: Claim, delay_seconds: float, now: datetime) -> bool:
        """See port.Queue."""
        delay_time = to_text(later(now, delay_seconds))
        with self._database.transaction() as connection:
            return write_held(connection, "snooze", claim, now, {"delay_time": delay_time})

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
                    released.append(job)
        return released

    def revive(self, job_id: str, now: datetime, *, from_source: bool = False) -> Job:
        """See port.Queue."""
        return self._owner_verb("revive", "revived", job_id, now, {"from_source": from_source})

    def cancel(self, job_id: str, now: datetime) -> Job:
        """See port.Queue."""
        return self._owner_verb("cancel", "cancelled", job_id, now, {})

    def get(self, job_id: str) -> Job:
        """See port.Queue."""
        with self._database.read() as connection:
            return get(connection, job_id)

    def find(self, job_id: str) -> Job | None:
        """See port.Queue."""
        with self._database.read() as connection:
            return one_job(connection, "job", {"id": job_id})

    def file(self, file_id: str) -> StoredFile:
        """See port.Queue."""
        with self._database.read() as connection:
            row = run(connection, "file", {"id": file_id}).fetchone()
        if row is None:
            raise AppError("not_found")
        return rows.stored_file(row)

    def transcript(self, job_id: str) -> Transcript | None:
        """See port.Queue."""
        with self._database.read() as connection:
            row = run(connection, "transcript", {"id": job_id}).fetchone()
        return rows.transcript(row) if row else None

    def events(self, job_id: str) -> Sequence[JobEvent]:
        """See port.Queue."""
        with self._database.read() as connection:
            return [rows.event(row) for row in run(connection, "events", {"id": job_id})]

    def page(self, chosen: JobFilter, *, before: int | None, limit: int) -> JobPage:
        """See port.Queue."""
        values = {"before": _NEWEST if before is None else before, "limit": limit + 1}
        with self._database.read() as connection:
            if chosen.states:
                lists = [
                    jobs(connection, "page_of_state", values | {"state": state})
                    for state in chosen.states
                ]
                newest_first = merge(*lists, key=lambda job: job.seq, reverse=True)
                found = list(islice(newest_first, limit + 1))
            else:
                found = jobs(connection, "page_all", values)
        shown = found[:limit]
        return JobPage(shown, shown[-1].seq if len(found) > limit else None)

    def counts(self) -> dict[State, int]:
        """See port.Queue."""
        with self._database.read() as connection:
            return {State(row["state"]): row["jobs"] for row in run(connection, "counts", {})}

    def position(self, job: Job) -> int | None:
        """See port.Queue."""
        if not job.state.is_active or job.is_running or job.delay_time is not None:
            return None
        with self._database.read() as connection:
            found = run(connection, "position", {"state": job.state, "seq": job.seq}).fetchone()
        return int(found[0]) or None

    def oldest_waiting(self) -> dict[State, datetime]:
        """See port.Queue."""
        with self._database.read() as connection:
            found = {
                state: run(connection, "oldest_waiting", {"state": state}).fetchone()
                for state in ACTIVE
            }
        return {state: from_text(row["created"]) for state, row in found.items() if row}

    def _owner_verb(
        self, statement: str, outcome: str, job_id: str, now: datetime, values: dict[str, Any]
    ) -> Job:
        with self._database.transaction() as connection:
            before = get(connection, job_id)
            job = one_job(connection, statement, {"id": job_id, "now": to_text(now)} | values)
            if job is None:
                raise AppError("wrong_state", f"the job is {before.state}")
            note(connection, job, outcome, now)
            if job.state.is_end:
                owe_reply(connection, job.id, now)
            return job


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
    run(connection, "add_file", asdict(result.file) | {"now": to_text(now)})
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
