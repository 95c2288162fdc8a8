"""What the owner does to jobs and steps: each verb one transaction, judged by what the row says.

There is one truth, the row: a verb works in every state that it makes sense in, whoever holds
the job, and otherwise says why not.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from app.clock import later, to_text
from app.db import Connection, Database
from app.errors import AppError
from app.job import Job, Step, StoredFile
from app.queue import rows
from app.queue.reads import Reads
from app.queue.records import get, jobs, note, one_job, owe_reply, run

_ERASE_MARGIN_SECONDS = 60.0
"""A job is erased this long after undelete() stopped taking it, so that the two never meet."""


class OwnerVerbs(Reads):
    """The owner's verbs of app.queue.port.Queue on one SQLite file."""

    def __init__(self, database: Database, on_ready: Callable[[], None]) -> None:
        super().__init__(database)
        self._on_ready = on_ready

    def revive(self, job_id: str, now: datetime, *, from_source: bool = False) -> Job:
        """See port.Queue."""
        with self._database.transaction() as connection:
            before = get(connection, job_id)
            job = _change(connection, "revive", job_id, now, {"from_source": from_source})
            if job.file != before.file:
                # Made anew, and then known to no row: its bytes would outlive the job.
                run(connection, "erase_file", {"file": before.file})
            run(connection, "drop_owed_replies", {"id": job_id})
            note(connection, job, "revived", now)
        self._on_ready()
        return job

    def cancel(self, job_id: str, now: datetime) -> Job:
        """See port.Queue."""
        with self._database.transaction() as connection:
            job = _cancel(connection, job_id, now)
        self._on_ready()
        return job

    def delete(self, job_id: str, now: datetime) -> Job:
        """See port.Queue."""
        with self._database.transaction() as connection:
            if get(connection, job_id).state.is_active:
                # Whoever handed it in is told that it was cancelled.
                _cancel(connection, job_id, now)
            job = _change(connection, "delete", job_id, now, {})
            note(connection, job, "deleted", now)
        self._on_ready()
        return job

    def undelete(self, job_id: str, bin_seconds: float, now: datetime) -> Job:
        """See port.Queue."""
        values = {"id": job_id, "now": to_text(now), "horizon": to_text(later(now, -bin_seconds))}
        with self._database.transaction() as connection:
            job = one_job(connection, "undelete", values)
            if job is None:
                if one_job(connection, "job", values):
                    raise AppError("wrong_state", "the job is not in the bin")
                raise AppError("not_found")
            note(connection, job, "undeleted", now)
        self._on_ready()
        return job

    def binned(
        self, bin_seconds: float, limit: int, now: datetime, *, after: int = 0
    ) -> Sequence[Job]:
        """See port.Queue."""
        values = {"horizon": _horizon(bin_seconds, now), "limit": limit, "after": after}
        with self._database.read() as connection:
            return jobs(connection, "binned", values)

    def files_of(self, job_id: str) -> Sequence[StoredFile]:
        """See port.Queue."""
        with self._database.read() as connection:
            found = run(connection, "files_of_job", {"id": job_id}).fetchall()
        return [rows.stored_file(row) for row in found]

    def erase(self, job_id: str, bin_seconds: float, now: datetime) -> bool:
        """See port.Queue."""
        values = {"id": job_id, "horizon": _horizon(bin_seconds, now)}
        with self._database.transaction() as connection:
            files = [row["id"] for row in run(connection, "files_of_job", values).fetchall()]
            if run(connection, "erase", values).rowcount != 1:
                return False
            for file in files:
                run(connection, "erase_file", {"file": file})
            return True

    def pause_step(self, step: Step, now: datetime) -> bool:
        """See port.Queue."""
        with self._database.transaction() as connection:
            values = {"step": step, "now": to_text(now)}
            return run(connection, "pause_step", values).rowcount == 1

    def resume_step(self, step: Step) -> bool:
        """See port.Queue."""
        with self._database.transaction() as connection:
            was_paused = run(connection, "resume_step", {"step": step}).rowcount == 1
        self._on_ready()
        return was_paused


def _cancel(connection: Connection, job_id: str, now: datetime) -> Job:
    job = _change(connection, "cancel", job_id, now, {})
    note(connection, job, "cancelled", now)
    owe_reply(connection, job.id, now)
    return job


def _change(
    connection: Connection, statement: str, job_id: str, now: datetime, values: dict[str, Any]
) -> Job:
    before = get(connection, job_id)
    job = one_job(connection, statement, {"id": job_id, "now": to_text(now)} | values)
    if job is None:
        raise AppError("wrong_state", f"the job is {before.state}")
    return job


def _horizon(bin_seconds: float, now: datetime) -> str:
    return to_text(later(now, -bin_seconds - _ERASE_MARGIN_SECONDS))
