"""The replies owed to senders: rows written with the end of a job, sent once after it (P47).

A reply goes from `owed` to `sending` before anything is sent. What a process that ended was
sending is `doubtful` and is never sent again by itself; only the owner may ask for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from app.clock import from_text, later, to_text
from app.db import Connection, Cursor, Database, statements
from app.errors import AppError
from app.job import Job, State, Transcript
from app.queue import rows

SQL = {
    name: text.replace("{job_columns}", rows.JOB_COLUMNS)
    for name, text in statements(Path(__file__).with_name("replies.sql")).items()
}


class Reason(StrEnum):
    """Why a reply could not be delivered (P24)."""

    INTAKE_DOWN = "intake_down"
    NO_ADDRESSEE = "no_addressee"
    REJECTED = "rejected"
    UNREACHABLE = "unreachable"


class ReplyState(StrEnum):
    """How far a reply has come; the last three are final."""

    OWED = "owed"
    SENDING = "sending"
    SENT = "sent"
    UNDELIVERED = "undelivered"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True)
class Reply:
    """What a job's end owes its sender; parts_sent counts the parts that surely arrived."""

    id: int
    job: str
    verdict: State
    state: ReplyState
    reason: Reason | None
    parts_sent: int
    created: datetime


@dataclass(frozen=True)
class Owed:
    """A reply in the hands of the process that sends it, and all that it is made of."""

    reply: Reply
    job: Job
    transcript: Transcript | None


class Replies:
    """The rows of `replies`; sender is the name of the process that sends (app.liveness)."""

    def __init__(self, database: Database, sender: str) -> None:
        self._database = database
        self._sender = sender

    def take(self, now: datetime) -> Owed | None:
        """The oldest owed reply, marked as being sent; None when nothing is owed."""
        with self._database.read() as connection:
            if not _run(connection, "has_owed", {}).fetchone()[0]:
                return None
        with self._database.transaction() as connection:
            taken = _replies(connection, "take_reply", self._fixed(now))
        if not taken:
            return None
        with self._database.read() as connection:
            job = _run(connection, "reply_job", {"id": taken[0].job}).fetchone()
            text = _run(connection, "reply_text", {"id": taken[0].job}).fetchone()
        return Owed(taken[0], rows.job(job), rows.transcript(text) if text else None)

    def part_sent(self, reply: Reply, parts_sent: int, now: datetime) -> bool:
        """Record that so many parts have surely arrived; False when the reply is another's."""
        return self._write("part_sent", reply, now, parts_sent=parts_sent)

    def sent(self, reply: Reply, now: datetime) -> bool:
        """The whole reply has arrived."""
        return self._settle(reply, ReplyState.SENT, None, now)

    def undelivered(self, reply: Reply, reason: Reason, now: datetime) -> bool:
        """It could not be delivered, for good (P22)."""
        return self._settle(reply, ReplyState.UNDELIVERED, reason, now)

    def doubtful(self, reply: Reply, now: datetime) -> bool:
        """It may have arrived or not, and is not sent again by itself."""
        return self._settle(reply, ReplyState.DOUBTFUL, None, now)

    def put_back(self, reply: Reply, now: datetime) -> bool:
        """Surely nothing more of it was sent: its next sender goes on after parts_sent."""
        return self._settle(reply, ReplyState.OWED, None, now)

    def doubt(self, is_gone: Callable[[str], bool], now: datetime) -> Sequence[Reply]:
        """Mark as doubtful what processes that are proven gone were sending."""
        with self._database.read() as connection:
            found = _run(connection, "senders_of_replies", {}).fetchall()
        # Asking whether a process lives touches files, so it happens outside the transaction.
        gone = [row["worker"] for row in found if is_gone(row["worker"])]
        doubted: list[Reply] = []
        for worker in gone:
            with self._database.transaction() as connection:
                values = {"worker": worker, "now": to_text(now)}
                doubted += _replies(connection, "doubt_replies", values)
        return doubted

    def expire(self, wait_seconds: float, now: datetime) -> Sequence[Reply]:
        """Give up replies that nobody came to send within the wait; at most a hundred at a time.

        For when no process that sends is alive, and for such a process as it starts: nothing
        is delivered days late.
        """
        values = {"horizon": to_text(later(now, -wait_seconds)), "now": to_text(now)}
        with self._database.read() as connection:
            if not _run(connection, "has_expired", values).fetchone()[0]:
                return []
        with self._database.transaction() as connection:
            return _replies(connection, "expire_replies", values)

    def of_job(self, job_id: str) -> Sequence[Reply]:
        """What became of a job's replies, oldest first."""
        with self._database.read() as connection:
            return _replies(connection, "replies_of_job", {"id": job_id})

    def send_again(self, job_id: str, now: datetime) -> Reply:
        """Owe the newest reply of a job once more, by the owner's will.

        AppError not_found when the job has no reply, wrong_state when that one is not
        undelivered or doubtful, or the job has gone on or lies in the bin.
        """
        with self._database.transaction() as connection:
            owed = _replies(connection, "owe_again", {"id": job_id, "now": to_text(now)})
            if not owed:
                known = _replies(connection, "replies_of_job", {"id": job_id})
                if not known:
                    raise AppError("not_found")
                is_final = known[-1].state in (ReplyState.UNDELIVERED, ReplyState.DOUBTFUL)
                told = "the job has gone on" if is_final else f"the reply is {known[-1].state}"
                raise AppError("wrong_state", told)
        return owed[0]

    def _settle(
        self, reply: Reply, state: ReplyState, reason: Reason | None, now: datetime
    ) -> bool:
        return self._write("settle_reply", reply, now, state=state, reason=reason)

    def _write(self, statement: str, reply: Reply, now: datetime, **values: object) -> bool:
        with self._database.transaction() as connection:
            fixed = self._fixed(now) | {"id": reply.id}
            return _run(connection, statement, fixed | values).rowcount == 1

    def _fixed(self, now: datetime) -> dict[str, object]:
        return {"worker": self._sender, "now": to_text(now)}


def _run(connection: Connection, statement: str, values: Mapping[str, object]) -> Cursor:
    return connection.execute(SQL[statement], values)


def _replies(connection: Connection, statement: str, values: Mapping[str, object]) -> list[Reply]:
    """The replies that a statement gives, read to the end: an unread RETURNING forbids COMMIT."""
    return [
        Reply(
            id=row["id"],
            job=row["job"],
            verdict=State(row["verdict"]),
            state=ReplyState(row["state"]),
            reason=Reason(row["reason"]) if row["reason"] else None,
            parts_sent=row["parts_sent"],
            created=from_text(row["created"]),
        )
        for row in _run(connection, statement, values).fetchall()
    ]
