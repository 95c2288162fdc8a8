"""Sessions: a row for each signed-in browser, so that signing out really ends it.

A signed cookie alone would keep working after log-out for whoever copied it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.clock import from_text, later, new_id, new_token, to_text
from app.db import Connection, Database, Row, statements
from app.errors import AppError
from app.owners.secrets import digest
from app.settings import Panel

USER_AGENT_LENGTH = 200
TOUCH_SECONDS = 60
"""last_seen is written no more often: each write is a synced commit."""


@dataclass(frozen=True)
class Session:
    """A live session; `id` names it in lists and is not the secret that the cookie holds."""

    id: str
    owner: str
    owner_name: str
    user_agent: str
    created: datetime
    last_seen: datetime
    expires: datetime


class Sessions:
    """Starts, finds and ends sessions."""

    def __init__(self, database: Database, panel: Panel) -> None:
        self._database = database
        self._panel = panel
        self._sql: Mapping[str, str] = statements(Path(__file__).with_name("owners.sql"))

    def start(self, owner_id: str, user_agent: str, now: datetime) -> str:
        """The secret of a new session, for the cookie; it is stored only as its hash."""
        token = new_token()
        with self._database.transaction() as connection:
            connection.execute(self._sql["drop_ended_sessions"], self._limits(now))
            connection.execute(
                self._sql["add_session"],
                {
                    "id": new_id(),
                    "token_hash": digest(token),
                    "owner": owner_id,
                    "user_agent": user_agent[:USER_AGENT_LENGTH],
                    "now": to_text(now),
                    "expires": to_text(later(now, self._panel.session_lifetime)),
                },
            )
        return token

    def find(self, token: str, now: datetime) -> Session | None:
        """The live session of a cookie's secret; it changes nothing."""
        if not token:
            return None
        values = {"token_hash": digest(token), **self._limits(now)}
        with self._database.read() as connection:
            row = connection.execute(self._sql["session_by_token"], values).fetchone()
        return _session(row) if row else None

    def touch(self, session: Session, now: datetime) -> None:
        """Note that a session was seen, which puts off its idle end."""
        if abs((now - session.last_seen).total_seconds()) < TOUCH_SECONDS:
            return
        with self._database.transaction() as connection:
            connection.execute(self._sql["touch_session"], {"id": session.id, "now": to_text(now)})

    def of(self, owner_id: str, now: datetime) -> Sequence[Session]:
        """The live sessions of an owner, newest first."""
        values = {"owner": owner_id, **self._limits(now)}
        with self._database.read() as connection:
            rows = connection.execute(self._sql["list_sessions"], values).fetchall()
        return [_session(row) for row in rows]

    def end(self, owner_id: str, session_id: str) -> None:
        """End one session of an owner; AppError not_found when there is none."""
        with self._database.transaction() as connection:
            values = {"id": session_id, "owner": owner_id}
            ended = connection.execute(self._sql["end_session"], values).rowcount
        if not ended:
            raise AppError("not_found")

    def end_others(self, owner_id: str, keep: str) -> int:
        """End all sessions of an owner but one; gives how many ended."""
        with self._database.transaction() as connection:
            return self.end_others_in(connection, owner_id, keep)

    def end_others_in(self, connection: Connection, owner_id: str, keep: str) -> int:
        """end_others() inside the caller's transaction; an empty `keep` ends all."""
        values = {"owner": owner_id, "keep": keep}
        return connection.execute(self._sql["end_other_sessions"], values).rowcount

    def end_all(self) -> int:
        """Sign everybody out, everywhere; gives how many sessions ended."""
        with self._database.transaction() as connection:
            return connection.execute(self._sql["end_all_sessions"]).rowcount

    def _limits(self, now: datetime) -> dict[str, str]:
        return {"now": to_text(now), "idle_since": to_text(later(now, -self._panel.session_idle))}


def _session(row: Row) -> Session:
    return Session(
        id=row["id"],
        owner=row["owner"],
        owner_name=row["owner_name"],
        user_agent=row["user_agent"],
        created=from_text(row["created"]),
        last_seen=from_text(row["last_seen"]),
        expires=from_text(row["expires"]),
    )
