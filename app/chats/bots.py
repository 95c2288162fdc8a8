"""Bots: how far each has read, and how it fares."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.chats.statements import changed, row
from app.clock import from_text, to_text
from app.db import Database, Row

_STALE_SECONDS = 60.0
"""How old the note of the last answer may grow: not every answer is worth a sync of the disk."""


class Trouble(StrEnum):
    """What keeps a bot from its news.

    unreachable: Telegram gives no answer. conflict: another program reads the same bot's news.
    refused: Telegram refuses, as it does for a token that was revoked. stuck: this machine's own
    fault, a full disk for one.
    """

    UNREACHABLE = "unreachable"
    CONFLICT = "conflict"
    REFUSED = "refused"
    STUCK = "stuck"


@dataclass(frozen=True)
class Bot:
    """A bot by Telegram's number; updated is when the last update was dealt with."""

    id: int
    username: str
    sees_all: bool
    read_up_to: int
    updated: datetime
    last_answer: datetime | None
    trouble: Trouble | None


class Bots:
    """The rows of telegram_bots."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def know(self, bot_id: int, username: str, sees_all: bool, now: datetime) -> Bot:
        """The row of a bot that has told its name, made when there is none."""
        values = {"id": bot_id, "username": username, "sees_all": sees_all, "now": to_text(now)}
        with self._database.transaction() as connection:
            found = row(connection, "know_bot", values)
        assert found is not None  # noqa: S101 - an INSERT that did not raise returns its row
        return _bot(found)

    def get(self, bot_id: int) -> Bot | None:
        """One bot, or None."""
        with self._database.read() as connection:
            found = row(connection, "bot", {"id": bot_id})
        return _bot(found) if found else None

    def newest(self) -> Bot | None:
        """The bot that Telegram answered last; None when there never was one."""
        with self._database.read() as connection:
            found = row(connection, "newest_bot", {})
        return _bot(found) if found else None

    def heard(self, bot: Bot, now: datetime) -> Bot:
        """Telegram answered, and all is well; written when that is news. Gives the bot as it is."""
        age = (now - bot.last_answer).total_seconds() if bot.last_answer else _STALE_SECONDS
        if bot.trouble is None and abs(age) < _STALE_SECONDS:
            return bot
        with self._database.transaction() as connection:
            values = {"id": bot.id, "now": to_text(now), "trouble": None}
            changed(connection, "bot_heard", values)
        return self.get(bot.id) or bot

    def in_trouble(self, bot: Bot, trouble: Trouble) -> Bot:
        """Something is wrong; written when that is news. Gives the bot as it is."""
        if bot.trouble is trouble:
            return bot
        with self._database.transaction() as connection:
            changed(connection, "bot_trouble", {"id": bot.id, "trouble": trouble})
        return self.get(bot.id) or bot

    def done(self, bot_id: int, update_id: int, now: datetime) -> None:
        """Everything up to this update is dealt with, durably."""
        values = {"id": bot_id, "read_up_to": update_id, "now": to_text(now)}
        with self._database.transaction() as connection:
            changed(connection, "update_done", values)


def _bot(found: Row) -> Bot:
    return Bot(
        id=found["id"],
        username=found["username"],
        sees_all=bool(found["sees_all"]),
        read_up_to=found["read_up_to"],
        updated=from_text(found["updated"]),
        last_answer=from_text(found["last_answer"]) if found["last_answer"] else None,
        trouble=Trouble(found["trouble"]) if found["trouble"] else None,
    )
