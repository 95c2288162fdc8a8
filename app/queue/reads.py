"""What is read of the queue: each verb one statement, outside any transaction."""

from collections.abc import Sequence
from datetime import datetime
from heapq import merge
from itertools import islice

from app.clock import from_text
from app.db import Database
from app.errors import AppError
from app.job import ACTIVE, Job, Piece, State, Step, StoredFile, Transcript
from app.queue import rows
from app.queue.port import JobEvent, JobFilter, JobPage
from app.queue.records import get, jobs, one_job, run

_NEWEST = 2**62
"""A cursor beyond every seq: a list from it starts at the newest job."""


class Reads:
    """The reading verbs of app.queue.port.Queue on one SQLite file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pieces(self, job_id: str, engine: str) -> Sequence[Piece]:
        """See port.Queue."""
        with self._database.read() as connection:
            found = run(connection, "pieces", {"id": job_id, "engine": engine})
            return [rows.piece(row) for row in found]

    def get(self, job_id: str) -> Job:
        """See port.Queue."""
        with self._database.read() as connection:
            return get(connection, job_id)

    def find(self, job_id: str) -> Job | None:
        """See port.Queue."""
        with self._database.read() as connection:
            return one_job(connection, "job", {"id": job_id})

    def find_binned(self, job_id: str) -> Job | None:
        """See port.Queue."""
        with self._database.read() as connection:
            return one_job(connection, "binned_job", {"id": job_id})

    def file(self, file_id: str) -> StoredFile:
        """See port.Queue."""
        return self._file("file", file_id)

    def shown_file(self, file_id: str) -> StoredFile:
        """See port.Queue."""
        return self._file("shown_file", file_id)

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
            if chosen.is_deleted:
                found = jobs(connection, "page_bin", values)
            elif chosen.states:
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
            place = {
                "state": job.state,
                "priority": job.priority,
                "turn": job.turn,
                "seq": job.seq,
            }
            found = run(connection, "position", place).fetchone()
        return int(found[0]) or None

    def oldest_waiting(self) -> dict[State, datetime]:
        """See port.Queue."""
        with self._database.read() as connection:
            found = {
                state: run(connection, "oldest_waiting", {"state": state}).fetchone()
                for state in ACTIVE
            }
        return {state: from_text(row["created"]) for state, row in found.items() if row}

    def paused_steps(self) -> dict[Step, datetime]:
        """See port.Queue."""
        with self._database.read() as connection:
            found = run(connection, "paused_steps", {}).fetchall()
        return {Step(row["step"]): from_text(row["paused_at"]) for row in found}

    def _file(self, statement: str, file_id: str) -> StoredFile:
        with self._database.read() as connection:
            row = run(connection, statement, {"id": file_id}).fetchone()
        if row is None:
            raise AppError("not_found")
        return rows.stored_file(row)
