"""Which message each job answers, and the one message that tells how the job stands."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from app.chats.statements import changed, row, rows
from app.clock import to_text
from app.db import Database, Row


@dataclass(frozen=True)
class JobMessage:
    """The recording's message of a job; language is that of the answers, a key of i18n.LANGUAGES.

    status_message is the acknowledgement once it is sent, shows what stands in it; both are the
    sender's own (app.telegram.status). status is "due" until nothing more is to be shown. person
    is who sent it, None for a channel. Recordings of one album share `album`.
    """

    job: str
    bot: int
    chat: int
    message: int
    thread: int | None
    album: str | None
    person: int | None
    language: str
    status_message: int | None = None
    shows: str | None = None
    status: str = "due"


class JobMessages:
    """The rows of telegram_messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, message: JobMessage, now: datetime) -> None:
        """Keep what a job answers; harmless when it is known."""
        with self._database.transaction() as connection:
            changed(connection, "add_message", vars(message) | {"now": to_text(now)})

    def of_job(self, job_id: str) -> JobMessage | None:
        """What a job answers; None for a job of another door."""
        return self._one("message_of_job", job=job_id)

    def at(self, bot: int, chat: int, message: int) -> JobMessage | None:
        """The job that stands for a message, or None."""
        return self._one("message_at", bot=bot, chat=chat, message=message)

    def by_status(self, bot: int, chat: int, status_message: int) -> Sequence[JobMessage]:
        """The jobs that a status message tells of: one, or those of an album."""
        return self._many("message_by_status", bot=bot, chat=chat, status_message=status_message)

    def due(self, limit: int, of_each_chat: int) -> Sequence[JobMessage]:
        """The messages whose status is to be shown or kept up, oldest first.

        Of each chat only so many: who sends a thousand recordings hides nobody else's.
        """
        return self._many("due_messages", limit=limit, of_each_chat=of_each_chat)

    def album(self, chat: int, album: str) -> Sequence[JobMessage]:
        """The recordings that were sent in one go, in their order."""
        return self._many("album", chat=chat, album=album)

    def active_jobs(self, chat: int, limit: int) -> Sequence[str]:
        """The ids of a chat's jobs that are not over, the newest first."""
        with self._database.read() as connection:
            found = rows(connection, "jobs_of_chat", {"chat": chat, "limit": limit})
        return [item["id"] for item in found]

    def show(
        self,
        job_id: str,
        status_message: int | None,
        shows: str | None,
        now: datetime,
        *,
        is_closed: bool = False,
    ) -> None:
        """Note which message tells of a job and what stands in it; closed: it stays so."""
        values = {
            "job": job_id,
            "status_message": status_message,
            "shows": shows,
            "status": "closed" if is_closed else "due",
            "now": to_text(now),
        }
        with self._database.transaction() as connection:
            changed(connection, "set_status", values)

    def reopen(self, job_id: str, now: datetime) -> None:
        """A job goes on: its status is to be shown again. Harmless for a job of another door."""
        with self._database.transaction() as connection:
            changed(connection, "reopen_status", {"job": job_id, "now": to_text(now)})

    def _one(self, statement: str, **values: object) -> JobMessage | None:
        with self._database.read() as connection:
            found = row(connection, statement, values)
        return _message(found) if found else None

    def _many(self, statement: str, **values: object) -> Sequence[JobMessage]:
        with self._database.read() as connection:
            return [_message(found) for found in rows(connection, statement, values)]


def _message(found: Row) -> JobMessage:
    return JobMessage(**{field.name: found[field.name] for field in fields(JobMessage)})
