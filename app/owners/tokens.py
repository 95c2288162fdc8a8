"""API tokens: shown once, stored as a hash, each good for named things only."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from app.clock import from_text, new_id, new_token, to_text
from app.db import Database, Row, statements
from app.errors import AppError
from app.owners.secrets import digest

PREFIX_LENGTH = 12
NAME_LENGTH = 64
TOUCH_SECONDS = 60
_MARK = "pisar_"


class Scope(StrEnum):
    """What a token is good for."""

    INTAKE = "intake"
    READ = "read"
    MANAGE = "manage"


@dataclass(frozen=True)
class ApiToken:
    """A token without its secret; last_used and revoked are None when they never happened."""

    id: str
    name: str
    prefix: str
    scopes: frozenset[Scope]
    created: datetime
    last_used: datetime | None
    revoked: datetime | None


class Tokens:
    """Makes, finds and revokes tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql: Mapping[str, str] = statements(Path(__file__).with_name("owners.sql"))

    def create(self, name: str, scopes: Collection[Scope], now: datetime) -> tuple[ApiToken, str]:
        """A new token and its secret, which is never to be had again.

        AppError bad_name for an empty or long name, name_taken, or no_scope.
        """
        clean = name.strip()
        if not 1 <= len(clean) <= NAME_LENGTH or not clean.isprintable():
            raise AppError("bad_name")
        if not scopes:
            raise AppError("no_scope")
        secret = _MARK + new_token()
        token = ApiToken(
            new_id(), clean, secret[:PREFIX_LENGTH], frozenset(scopes), now, None, None
        )
        self._add(token, digest(secret), now)
        return token, secret

    def find(self, secret: str, now: datetime) -> ApiToken | None:
        """The working token of a secret; its use is noted, at most once a minute."""
        token = self.peek(secret)
        if token and _is_stale(token.last_used, now):
            with self._database.transaction() as connection:
                values = {"id": token.id, "now": to_text(now)}
                connection.execute(self._sql["touch_token"], values)
        return token

    def peek(self, secret: str) -> ApiToken | None:
        """The working token of a secret; it changes nothing."""
        with self._database.read() as connection:
            values = {"token_hash": digest(secret)}
            row = connection.execute(self._sql["token_by_hash"], values).fetchone()
        return _token(row) if row else None

    def all(self) -> Sequence[ApiToken]:
        """Every token, revoked ones too, the newest first."""
        with self._database.read() as connection:
            return [_token(row) for row in connection.execute(self._sql["list_tokens"])]

    def revoke(self, id_or_name: str, now: datetime) -> None:
        """End a token at once; AppError not_found when no working one is so called."""
        with self._database.transaction() as connection:
            values = {"id_or_name": id_or_name, "now": to_text(now)}
            revoked = connection.execute(self._sql["revoke_token"], values).rowcount
        if not revoked:
            raise AppError("not_found")

    def _add(self, token: ApiToken, token_hash: str, now: datetime) -> None:
        with self._database.transaction() as connection:
            taken = connection.execute(self._sql["token_name_taken"], {"name": token.name})
            if taken.fetchone():
                raise AppError("name_taken")
            connection.execute(
                self._sql["add_token"],
                {
                    "id": token.id,
                    "name": token.name,
                    "token_hash": token_hash,
                    "prefix": token.prefix,
                    "may_intake": int(Scope.INTAKE in token.scopes),
                    "may_read": int(Scope.READ in token.scopes),
                    "may_manage": int(Scope.MANAGE in token.scopes),
                    "now": to_text(now),
                },
            )


def _is_stale(last_used: datetime | None, now: datetime) -> bool:
    return last_used is None or abs((now - last_used).total_seconds()) >= TOUCH_SECONDS


def _token(row: Row) -> ApiToken:
    return ApiToken(
        id=row["id"],
        name=row["name"],
        prefix=row["prefix"],
        scopes=frozenset(scope for scope in Scope if row[f"may_{scope}"]),
        created=from_text(row["created"]),
        last_used=from_text(row["last_used"]) if row["last_used"] else None,
        revoked=from_text(row["revoked"]) if row["revoked"] else None,
    )
