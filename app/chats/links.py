"""Upload links: each good for one recording, its secret kept as a hash."""

from dataclasses import dataclass, fields
from datetime import datetime

from app.chats.statements import changed, row
from app.clock import from_text, later, new_token, to_text
from app.db import Database
from app.owners.secrets import digest


@dataclass(frozen=True)
class Link:
    """A link: the message it was made for (None: made by the owner), and the job that came by it.

    expires is when it ends unused.
    """

    token_hash: str
    bot: int | None
    chat: int | None
    message: int | None
    thread: int | None
    person: int | None
    language: str
    job: str | None
    expires: datetime

    @property
    def is_used(self) -> bool:
        """True when its one recording has come."""
        return self.job is not None


@dataclass(frozen=True)
class LinkFor:
    """The message that a link is made for, and the language of its answers."""

    bot: int | None
    chat: int | None
    message: int | None
    thread: int | None
    person: int | None
    language: str


class Links:
    """The rows of upload_links."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(self, wanted: LinkFor, lifetime_seconds: float, now: datetime) -> str:
        """A fresh secret for `/u/<secret>`; links that nobody used in time go at the same time."""
        secret = new_token()
        values = vars(wanted) | {
            "token_hash": digest(secret),
            "now": to_text(now),
            "expires": to_text(later(now, lifetime_seconds)),
        }
        with self._database.transaction() as connection:
            changed(connection, "drop_old_links", values)
            changed(connection, "add_link", values)
        return secret

    def find(self, secret: str, now: datetime) -> Link | None:
        """The link of a secret, good or used; None when there is none, or its time is over."""
        with self._database.read() as connection:
            values = {"token_hash": digest(secret), "now": to_text(now)}
            found = row(connection, "link", values)
        if found is None:
            return None
        kept = {field.name: found[field.name] for field in fields(Link)}
        return Link(**kept | {"expires": from_text(found["expires"])})

    def use(self, link: Link, job_id: str) -> None:
        """Its recording has come; it brings no other."""
        with self._database.transaction() as connection:
            changed(connection, "use_link", {"token_hash": link.token_hash, "job": job_id})
