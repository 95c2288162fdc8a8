"""What an update of Telegram means: recordings, commands, pressed buttons, and how chats change.

Updates are strangers' text: every number and word is checked here, and what does not fit is a
MalformedError, of which the receiver says so once and goes on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.chats import ChatKind
from app.i18n import best_language
from app.intake import clean_name

# https://core.telegram.org/bots/api#message: numbers have at most 52 significant bits.
_LARGEST_NUMBER = 2**52
_COMMAND = re.compile(r"/([a-z0-9_]{1,32})(?:@([A-Za-z0-9_]{1,64}))?(?:\s+(.*))?", re.DOTALL)
_FILE_ID = re.compile(r"[\x21-\x7e]{1,512}")
# In the order of preference: a GIF comes as `animation` and as `document` too.
_KINDS = ("voice", "audio", "video_note", "video", "document")
_SILENT_KINDS = frozenset({"animation", "photo", "sticker", "text", "contact", "location", "poll"})
_MESSAGES = ("message", "channel_post")
_INSIDE = frozenset({"member", "administrator", "creator", "restricted"})


class MalformedError(Exception):
    """An update that is not what Telegram's documentation says; the text holds nothing of it."""


@dataclass(frozen=True)
class Person:
    """Somebody with a number; language is a key of i18n.LANGUAGES, None when not told."""

    id: int
    language: str | None


@dataclass(frozen=True)
class Place:
    """Where something happened, and who did it: None for a channel or an anonymous admin."""

    chat: int
    kind: ChatKind
    title: str
    thread: int | None
    person: Person | None
    is_admin: bool = False

    @property
    def is_private(self) -> bool:
        """True for a person alone with the bot."""
        return self.kind is ChatKind.PRIVATE


@dataclass(frozen=True)
class Recording:
    """A file that may hold sound; size in bytes and seconds are what Telegram says, or None."""

    kind: str
    file_id: str
    size: int | None
    seconds: int | None
    name: str | None


@dataclass(frozen=True)
class Sent:
    """A recording was sent; is_asked when its caption asks for the text."""

    place: Place
    message: int
    recording: Recording
    album: str | None = None
    is_asked: bool = False


@dataclass(frozen=True)
class Command:
    """A command; replied is the recording that it answers, replied_to that message's number."""

    place: Place
    message: int
    name: str
    argument: str
    replied: Sent | None = None
    replied_to: int | None = None


@dataclass(frozen=True)
class Chatter:
    """A private message that is neither a recording nor a command."""

    place: Place
    message: int


@dataclass(frozen=True)
class Press:
    """A button was pressed on the message."""

    place: Place
    message: int
    callback: str
    data: str


@dataclass(frozen=True)
class Membership:
    """The bot came into a chat, left it, or its rights changed; was_inside is the state before."""

    place: Place
    is_inside: bool
    was_inside: bool
    is_admin: bool


@dataclass(frozen=True)
class Moved:
    """A group became a supergroup and has another number."""

    old: int
    new: int


Meaning = Sent | Command | Chatter | Press | Membership | Moved


def update_id(update: object) -> int:
    """The number of an update; MalformedError."""
    return _number(_object(update), "update_id")


def read(update: object, username: str) -> Meaning | None:
    """What an update means to the bot of that name; None when it is nothing to it."""
    raw = _object(update)
    for name in _MESSAGES:
        if name in raw:
            return _message(_object(raw[name]), username)
    if "callback_query" in raw:
        return _press(_object(raw["callback_query"]))
    if "my_chat_member" in raw:
        return _membership(_object(raw["my_chat_member"]))
    # Edited messages too: the file of one is the same, and a new caption makes no new job.
    return None


def _message(raw: Mapping[str, Any], username: str) -> Meaning | None:
    place = _place(raw)
    if "migrate_to_chat_id" in raw:
        return Moved(place.chat, _number(raw, "migrate_to_chat_id"))
    if "migrate_from_chat_id" in raw:
        return Moved(_number(raw, "migrate_from_chat_id"), place.chat)
    number = _number(raw, "message_id")
    sent = _sent(raw, place, username)
    if sent:
        return sent
    found = _command(raw.get("text"), username)
    if found:
        replied_to, replied = _replied(raw, username)
        return Command(place, number, *found, replied, replied_to)
    if place.is_private and not _SILENT_KINDS.isdisjoint(raw):
        return Chatter(place, number)
    return None


def _sent(raw: Mapping[str, Any], place: Place, username: str) -> Sent | None:
    kind = next((kind for kind in _KINDS if kind in raw), None)
    if kind is None or "animation" in raw:
        return None
    file = _object(raw[kind])
    file_id = file.get("file_id")
    if not (isinstance(file_id, str) and _FILE_ID.fullmatch(file_id)):
        raise MalformedError("file_id")
    asked = _command(raw.get("caption"), username)
    recording = Recording(
        kind, file_id, _size(file, "file_size"), _size(file, "duration"), _name(file)
    )
    album = raw.get("media_group_id")
    return Sent(
        place,
        _number(raw, "message_id"),
        recording,
        str(album)[:64] if isinstance(album, str | int) and str(album) else None,
        is_asked=asked is not None and asked[0] == "text",
    )


def _command(text: object, username: str) -> tuple[str, str] | None:
    """The command's word and what stands after it; None when there is none, or it is another's."""
    found = _COMMAND.fullmatch(text) if isinstance(text, str) else None
    if not found:
        return None
    if found[2] and found[2].lower() != username.lower():
        return None
    return found[1], (found[3] or "").strip()


def _replied(raw: Mapping[str, Any], username: str) -> tuple[int | None, Sent | None]:
    if "reply_to_message" not in raw:
        return None, None
    replied = _object(raw["reply_to_message"])
    return _number(replied, "message_id"), _sent(replied, _place(replied), username)


def _press(raw: Mapping[str, Any]) -> Press | None:
    data, callback = raw.get("data"), raw.get("id")
    if not (isinstance(callback, str) and _FILE_ID.fullmatch(callback)):
        raise MalformedError("callback_query.id")
    if not isinstance(data, str) or "message" not in raw:
        return None
    message = _object(raw["message"])
    # The message is the bot's own, and in a channel the channel's: who pressed stands beside it,
    # and may be any reader.
    place = _place({**message, "from": raw.get("from"), "sender_chat": None})
    return Press(
        replace(place, is_admin=False), _number(message, "message_id"), callback, data[:64]
    )


def _membership(raw: Mapping[str, Any]) -> Membership:
    before = _object(raw.get("old_chat_member")).get("status")
    after = _object(raw.get("new_chat_member")).get("status")
    return Membership(
        _place(raw),
        is_inside=after in _INSIDE,
        was_inside=before in _INSIDE,
        is_admin=after in ("administrator", "creator"),
    )


def _place(raw: Mapping[str, Any]) -> Place:
    chat = _object(raw.get("chat"))
    number = _number(chat, "id")
    try:
        kind = ChatKind(str(chat.get("type")))
    except ValueError:
        raise MalformedError("chat.type") from None
    by = raw.get("sender_chat")
    is_anonymous_admin = isinstance(by, Mapping) and by.get("id") == number
    is_topic = raw.get("is_topic_message") is True
    return Place(
        number,
        kind,
        _title(chat, number),
        _number(raw, "message_thread_id") if is_topic else None,
        None if by is not None else _person(raw.get("from")),
        is_admin=is_anonymous_admin or kind is ChatKind.CHANNEL,
    )


def _person(raw: object) -> Person | None:
    if raw is None:
        return None
    found = _object(raw)
    if found.get("is_bot") is True:
        return None
    tag = found.get("language_code")
    return Person(_number(found, "id"), best_language([tag]) if isinstance(tag, str) else None)


def _title(chat: Mapping[str, Any], number: int) -> str:
    words = [chat.get(name) for name in ("title", "first_name", "last_name")]
    said = " ".join(word for word in words if isinstance(word, str))
    return clean_name(said) if said.strip() else str(number)


def _name(file: Mapping[str, Any]) -> str | None:
    for key in ("file_name", "title"):
        if isinstance(file.get(key), str) and file[key].strip():
            return str(file[key])
    return None


def _size(raw: Mapping[str, Any], key: str) -> int | None:
    value = raw.get(key)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 <= value < _LARGEST_NUMBER else None  # type: ignore[operator]


def _number(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= _LARGEST_NUMBER:
        raise MalformedError(key)
    return value


def _object(raw: object) -> Mapping[str, Any]:
    if not isinstance(raw, dict):
        raise MalformedError("not an object")
    return raw
