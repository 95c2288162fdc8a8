"""Chats that the bot has seen: who may use it, which recordings become text, in which language."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.chats.statements import changed, row, rows
from app.clock import from_text, later, to_text
from app.db import Database, Row
from app.errors import AppError

_MOVES_AT_MOST = 5
"""A group moves once in its life; more would be a circle."""


class ChatKind(StrEnum):
    """Telegram's kinds of chats."""

    PRIVATE = "private"
    GROUP = "group"
    SUPERGROUP = "supergroup"
    CHANNEL = "channel"


class Access(StrEnum):
    """The owner's word on a chat; unset leaves it to the settings."""

    UNSET = "unset"
    ALLOWED = "allowed"
    DENIED = "denied"


class Mode(StrEnum):
    """Which recordings of a chat become text."""

    ALL = "all"
    ON_REQUEST = "on_request"
    OFF = "off"


@dataclass(frozen=True)
class Chat:
    """A chat by Telegram's number; title is a person's name in a private chat.

    language is what /lang chose, None by each person's own. migrated_to is the number that a
    group has since it became a supergroup. last_refusal: when it was told that it may not.
    """

    id: int
    kind: ChatKind
    title: str
    access: Access
    mode: Mode
    language: str | None
    migrated_to: int | None
    is_member: bool
    last_refusal: datetime | None
    last_seen: datetime
    created: datetime

    @property
    def is_private(self) -> bool:
        """True for a person alone with the bot."""
        return self.kind is ChatKind.PRIVATE


class Chats:
    """The rows of telegram_chats."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def seen(
        self, chat_id: int, kind: ChatKind, title: str, first_mode: Mode, now: datetime
    ) -> Chat:
        """The chat that something came from; one not known yet begins with first_mode."""
        values = {
            "id": chat_id,
            "kind": kind,
            "title": title,
            "mode": first_mode,
            "now": to_text(now),
        }
        with self._database.transaction() as connection:
            found = row(connection, "see_chat", values)
        assert found is not None  # noqa: S101 - an INSERT that did not raise returns its row
        return _chat(found)

    def get(self, chat_id: int) -> Chat:
        """The chat, or AppError not_found."""
        found = self.find(chat_id)
        if found is None:
            raise AppError("not_found")
        return found

    def find(self, chat_id: int) -> Chat | None:
        """The chat, or None when the bot never saw it."""
        with self._database.read() as connection:
            found = row(connection, "chat", {"id": chat_id})
        return _chat(found) if found else None

    def newest(self, limit: int) -> Sequence[Chat]:
        """The chats heard of last, without those that have moved."""
        with self._database.read() as connection:
            return [_chat(found) for found in rows(connection, "chats", {"limit": limit})]

    def titles(self, chat_ids: Iterable[int]) -> Mapping[int, str]:
        """What chats are called, those that the bot knows, in one question."""
        with self._database.read() as connection:
            values = {"ids": json.dumps(list(chat_ids))}
            return {found["id"]: found["title"] for found in rows(connection, "titles", values)}

    def address(self, chat_id: int) -> int:
        """Where a chat is now: its own number, or the one it has moved to."""
        for _ in range(_MOVES_AT_MOST):
            found = self.find(chat_id)
            if found is None or found.migrated_to is None:
                break
            chat_id = found.migrated_to
        return chat_id

    def moved(self, old: int, new: int, now: datetime) -> None:
        """A group lives on under another number; the owner's word and its choices go with it."""
        if old == new:
            return
        with self._database.transaction() as connection:
            changed(connection, "move_chat", {"old": old, "new": new, "now": to_text(now)})
            changed(connection, "leave_chat", {"old": old, "new": new})

    def set_access(self, chat_id: int, access: Access) -> None:
        """The owner's word on a chat; AppError not_found."""
        self._set("set_access", chat_id, access=access)

    def set_mode(self, chat_id: int, mode: Mode) -> None:
        """Which recordings become text; AppError not_found."""
        self._set("set_mode", chat_id, mode=mode)

    def set_language(self, chat_id: int, language: str) -> None:
        """The language of all answers in a chat; AppError not_found."""
        self._set("set_language", chat_id, language=language)

    def set_member(self, chat_id: int, is_member: bool) -> None:
        """Whether the bot is in the chat; AppError not_found."""
        self._set("set_member", chat_id, is_member=is_member)

    def may_refuse(self, chat_id: int, pause_seconds: float, now: datetime) -> bool:
        """True when the chat was not told within the pause that it may not; it counts as told."""
        values = {"id": chat_id, "now": to_text(now), "before": to_text(later(now, -pause_seconds))}
        with self._database.transaction() as connection:
            return changed(connection, "note_refusal", values)

    def _set(self, statement: str, chat_id: int, **values: object) -> None:
        with self._database.transaction() as connection:
            if not changed(connection, statement, {"id": chat_id} | values):
                raise AppError("not_found")


def _chat(found: Row) -> Chat:
    return Chat(
        id=found["id"],
        kind=ChatKind(found["kind"]),
        title=found["title"],
        access=Access(found["access"]),
        mode=Mode(found["mode"]),
        language=found["language"],
        migrated_to=found["migrated_to"],
        is_member=bool(found["is_member"]),
        last_refusal=from_text(found["last_refusal"]) if found["last_refusal"] else None,
        last_seen=from_text(found["last_seen"]),
        created=from_text(found["created"]),
    )
