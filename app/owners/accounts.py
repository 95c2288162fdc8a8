"""The owner's account: invited, verified, given a new password."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.clock import later, new_id, new_token, to_text
from app.db import Connection, Database, Row, statements
from app.errors import AppError
from app.owners.secrets import digest, hash_password, is_password
from app.owners.sessions import Sessions
from app.owners.throttle import Throttle, subjects_of
from app.owners.tokens import Tokens
from app.settings import Panel

_NAME = re.compile(r"[\w.@-]{1,64}")


@dataclass(frozen=True)
class Owner:
    """Who runs the service."""

    id: str
    name: str


class Owners:
    """Accounts; `sessions` and `tokens` hold what belongs to them."""

    def __init__(self, database: Database, panel: Panel) -> None:
        self.sessions = Sessions(database, panel)
        self.tokens = Tokens(database)
        self._database = database
        self._panel = panel
        self._sql: Mapping[str, str] = statements(Path(__file__).with_name("owners.sql"))
        self._throttle = Throttle(self._sql)

    def exists(self) -> bool:
        """True once somebody owns this service."""
        with self._database.read() as connection:
            return connection.execute(self._sql["any_owner"]).fetchone() is not None

    def only(self) -> Owner:
        """The one owner; AppError not_found before there is any."""
        with self._database.read() as connection:
            row = connection.execute(self._sql["only_owner"]).fetchone()
        return _owner(row)

    def invite(self, now: datetime) -> str:
        """The secret of a fresh invitation to become the owner; older ones end.

        AppError owner_exists once there is an owner.
        """
        token = new_token()
        with self._database.transaction() as connection:
            self._refuse_second(connection)
            connection.execute(self._sql["drop_invitations"])
            connection.execute(
                self._sql["add_invitation"],
                {
                    "token_hash": digest(token),
                    "now": to_text(now),
                    "expires": to_text(later(now, self._panel.invite_lifetime)),
                },
            )
        return token

    def is_invited(self, token: str, now: datetime) -> bool:
        """True while this invitation can be used."""
        with self._database.read() as connection:
            return self._is_open(connection, token, now)

    def accept_invitation(self, token: str, name: str, password: str, now: datetime) -> Owner:
        """Make the owner; of any number of uses of one invitation at once, one succeeds.

        AppError invitation_over, bad_name or weak_password.
        """
        # Asked first, so that a stranger's guess costs no password hash; decided below.
        if not self.is_invited(token, now):
            raise AppError("invitation_over")
        owner = Owner(new_id(), checked_name(name))
        values = {
            "id": owner.id,
            "name": owner.name,
            "name_key": _key(name),
            "password_hash": hash_password(password),
            "now": to_text(now),
        }
        with self._database.transaction() as connection:
            if not self._is_open(connection, token, now):
                raise AppError("invitation_over")
            connection.execute(self._sql["add_owner"], values)
            connection.execute(self._sql["drop_invitations"])
        return owner

    def verify(self, name: str, password: str, address: str, now: datetime) -> Owner:
        """The owner of that name and password; AppError wrong_password, or TooManyTriesError.

        address is where the try comes from.
        """
        key = _key(name)
        subjects = subjects_of(key, address)
        with self._database.transaction() as connection:
            self._throttle.count(connection, subjects, now)
        with self._database.read() as connection:
            row = connection.execute(self._sql["owner_by_name"], {"name_key": key}).fetchone()
        if not is_password(row["password_hash"] if row else None, password):
            raise AppError("wrong_password")
        with self._database.transaction() as connection:
            self._throttle.forget(connection, subjects, now)
        return _owner(row)

    def change_password(
        self, owner_id: str, current: str, new: str, keep_session: str, address: str, now: datetime
    ) -> None:
        """Set a new password by who knows the present one; all other sessions end.

        AppError wrong_password, weak_password, or TooManyTriesError: an open browser is no place
        to guess the password from.
        """
        with self._database.read() as connection:
            row = connection.execute(self._sql["owner_by_id"], {"id": owner_id}).fetchone()
        self.verify(_owner(row).name, current, address, now)
        self._set_password(owner_id, new, keep_session, now)

    def reset_password(self, new: str, now: datetime) -> Owner:
        """Set the owner's password from the console; every session ends.

        AppError not_found without an owner, or weak_password.
        """
        owner = self.only()
        self._set_password(owner.id, new, "", now)
        return owner

    def _set_password(self, owner_id: str, new: str, keep_session: str, now: datetime) -> None:
        values = {"id": owner_id, "password_hash": hash_password(new), "now": to_text(now)}
        with self._database.transaction() as connection:
            connection.execute(self._sql["set_password"], values)
            self.sessions.end_others_in(connection, owner_id, keep_session)

    def _is_open(self, connection: Connection, token: str, now: datetime) -> bool:
        values = {"token_hash": digest(token), "now": to_text(now)}
        return connection.execute(self._sql["open_invitation"], values).fetchone() is not None

    def _refuse_second(self, connection: Connection) -> None:
        if connection.execute(self._sql["any_owner"]).fetchone():
            raise AppError("owner_exists")


def checked_name(name: str) -> str:
    """The account name in its stored form; AppError bad_name when it is none."""
    clean = unicodedata.normalize("NFKC", name).strip()
    if not _NAME.fullmatch(clean):
        raise AppError("bad_name")
    return clean


def _key(name: str) -> str:
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _owner(row: Row | None) -> Owner:
    if row is None:
        raise AppError("not_found")
    return Owner(row["id"], row["name"])
