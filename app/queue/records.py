"""The queue's single statements: running them, reading jobs, and noting what happened."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from app.clock import to_text
from app.db import Connection, Cursor, statements
from app.errors import AppError
from app.job import STEP_OF, Job
from app.queue import rows
from app.queue.port import Claim

SQL: Mapping[str, str] = {
    name: text.replace("{job_columns}", rows.JOB_COLUMNS)
    for name, text in statements(Path(__file__).with_name("sqlite.sql")).items()
}


def run(connection: Connection, statement: str, values: Mapping[str, Any]) -> Cursor:
    """Execute a named statement."""
    return connection.execute(SQL[statement], values)


def jobs(connection: Connection, statement: str, values: Mapping[str, Any]) -> list[Job]:
    """The jobs that a statement gives, read to the end: an unread RETURNING forbids the COMMIT."""
    return [rows.job(row) for row in run(connection, statement, values).fetchall()]


def one_job(connection: Connection, statement: str, values: Mapping[str, Any]) -> Job | None:
    """The job that a statement gives, or None."""
    found = jobs(connection, statement, values)
    return found[0] if found else None


def get(connection: Connection, job_id: str) -> Job:
    """The job of an id, or AppError not_found."""
    job = one_job(connection, "job", {"id": job_id})
    if job is None:
        raise AppError("not_found")
    return job


def write_held(
    connection: Connection,
    statement: str,
    claim: Claim,
    now: datetime,
    values: Mapping[str, Any] | None = None,
) -> bool:
    """Run a write that is conditional on the claim; False when the claim is another's by now."""
    fixed = {"id": claim.job.id, "acquisition_id": claim.acquisition_id, "now": to_text(now)}
    return run(connection, statement, {**fixed, **(values or {})}).rowcount == 1


def owe_reply(connection: Connection, job_id: str, now: datetime) -> None:
    """Write the reply that an ended job owes its sender, where there is one to answer (P47)."""
    run(connection, "owe_reply", {"id": job_id, "now": to_text(now)})


def note(
    connection: Connection,
    job: Job,
    outcome: str,
    now: datetime,
    *,
    worker: str | None = None,
    error_code: str | None = None,
    error_text: str | None = None,
    seconds: float | None = None,
) -> None:
    """Add a line to a job's timeline (P42)."""
    values = {
        "job": job.id,
        "now": to_text(now),
        "state": job.state,
        "step": STEP_OF.get(job.ended_from or job.state),
        "worker": worker,
        "attempt": job.attempts,
        "outcome": outcome,
        "error_code": error_code,
        "error_text": error_text,
        "seconds": seconds,
    }
    run(connection, "add_event", values)


def note_end(
    connection: Connection,
    claim: Claim,
    outcome: str,
    now: datetime,
    error: AppError | None = None,
) -> None:
    """Note how a claim ended."""
    note(
        connection,
        claim.job,
        outcome,
        now,
        worker=claim.worker,
        error_code=error.code if error else None,
        error_text=error.detail or None if error else None,
        # The clock may have stepped back since the claim.
        seconds=max((now - claim.claimed_at).total_seconds(), 0.0),
    )
