"""The Bot API in plain values: the only user of telebot, and the keeper of the token (P26, P29).

Every method raises TelegramError and nothing else: Refused, Busy or Unreachable.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import telebot
from telebot import apihelper, types

from app.settings import Settings
from app.storage.port import Draft
from app.telegram.errors import Busy, NoSuchBot, Refused, TelegramError, Unreachable
from app.telegram.wire import Wire

__all__ = ["BotApi", "Busy", "Me", "NoSuchBot", "Refused", "TelegramError", "Unreachable", "build"]

Buttons = Sequence[Sequence[tuple[str, str]]]
"""Rows of buttons: the label, and the data that comes back when it is pressed (64 bytes)."""

UPDATES_AT_ONCE = 100
NEWS = ("message", "edited_message", "channel_post", "callback_query", "my_chat_member")

_CONNECT_SECONDS = 10.0
_NO_SUCH_BOT = (401, 404)
# The slowest line that is worth waiting for: 20 MB then take ten minutes.
_LEAST_BYTES_PER_SECOND = 32 * 1024
_UNKNOWN_SIZE_BYTES = 20 * 1024**2
_CHUNK_BYTES = 256 * 1024
_DOCUMENT = "document"


@dataclass(frozen=True)
class Me:
    """The bot itself; sees_all: it is shown every message of a group (privacy mode is off)."""

    id: int
    username: str
    sees_all: bool


@dataclass(frozen=True)
class TelegramFile:
    """A file that is ready to be fetched; size in bytes, None when Telegram does not say."""

    path: str
    size: int | None


def build(settings: Settings) -> "BotApi":
    """The one client of this process; ValueError without a token.

    The library keeps its address and its ways in a module, so a second client of another bot
    would take the first one's.
    """
    if settings.telegram.token is None:
        raise ValueError("no bot without telegram.token")
    # It brings a handler that writes past our log, and tells whole messages.
    telebot.logger.handlers.clear()
    telebot.logger.setLevel(logging.CRITICAL)
    telebot.logger.propagate = False
    return BotApi(settings, settings.telegram.token.get_secret_value())


class BotApi:
    """Telegram's Bot API for one bot; any thread may ask, each has a connection of its own."""

    def __init__(self, settings: Settings, token: str) -> None:
        self._token = token
        self._base = settings.telegram.api_url.rstrip("/")
        self._is_local = settings.telegram.local
        self._timeout = (
            min(_CONNECT_SECONDS, settings.telegram.request_timeout),
            settings.telegram.request_timeout,
        )
        self._wire = Wire(token)
        # The library fills the address in by format(): braces of the owner's are not its own.
        base = self._base.replace("{", "{{").replace("}", "}}")
        apihelper.API_URL = base + "/bot{0}/{1}"
        apihelper.CONNECT_TIMEOUT, apihelper.READ_TIMEOUT = self._timeout
        # Its own way leaves the quotes of a file's name away.
        apihelper.format_header_param = None
        apihelper.CUSTOM_REQUEST_SENDER = self._wire.send

    def __repr__(self) -> str:
        return "BotApi()"

    def me(self) -> Me:
        """Who this bot is; NoSuchBot when Telegram does not know the token (P27)."""
        found: Any = None
        try:
            found = apihelper.get_me(self._token)
        except Refused as refusal:
            if refusal.error_code not in _NO_SUCH_BOT:
                raise
        if found is None:
            raise NoSuchBot
        answer = _object(found)
        username = answer.get("username")
        return Me(
            _number(answer, "id"),
            username if isinstance(username, str) else "",
            answer.get("can_read_all_group_messages") is True,
        )

    def updates(self, offset: int, timeout_seconds: int) -> Sequence[Any]:
        """The updates from this number on, waited for so long; what is before it is confirmed."""
        found = apihelper.get_updates(
            self._token,
            offset=offset,
            limit=UPDATES_AT_ONCE,
            allowed_updates=list(NEWS),
            long_polling_timeout=timeout_seconds,
        )
        if not isinstance(found, list):
            raise Unreachable("no list of updates", may_have_arrived=False)
        return found

    def stop_waiting(self) -> None:
        """End a wait in updates() of another thread, and every later one, by Unreachable."""
        self._wire.hang_up()

    def send_message(
        self,
        chat_id: int,
        text: str,
        *,
        thread_id: int | None = None,
        reply_to: int | None = None,
        buttons: Buttons | None = None,
    ) -> int:
        """Send plain text and give its message's number; reply_to may have been deleted."""
        sent = apihelper.send_message(
            self._token,
            chat_id,
            text,
            message_thread_id=thread_id,
            reply_parameters=_reply(reply_to),
            reply_markup=_keyboard(buttons),
            link_preview_options=_no_preview(),
        )
        return _number(_object(sent), "message_id")

    def edit_message(
        self, chat_id: int, message_id: int, text: str, *, buttons: Buttons | None = None
    ) -> None:
        """Put other text in a message of the bot's; the buttons that are not given go."""
        apihelper.edit_message_text(
            self._token,
            text,
            chat_id,
            message_id,
            reply_markup=_keyboard(buttons),
            link_preview_options=_no_preview(),
        )

    def delete_message(self, chat_id: int, message_id: int) -> None:
        """Take a message away."""
        apihelper.delete_message(self._token, chat_id, message_id)

    def send_document(
        self,
        chat_id: int,
        name: str,
        data: bytes,
        *,
        caption: str = "",
        thread_id: int | None = None,
        reply_to: int | None = None,
        buttons: Buttons | None = None,
    ) -> int:
        """Send a file of that name and give its message's number; the caption has 1024 letters."""
        sent = apihelper.send_data(
            self._token,
            chat_id,
            data,
            _DOCUMENT,
            caption=caption,
            visible_file_name=name,
            reply_markup=_keyboard(buttons),
            message_thread_id=thread_id,
            reply_parameters=_reply(reply_to),
        )
        return _number(_object(sent), "message_id")

    def member(self, chat_id: int, user_id: int) -> str:
        """What a person is in a chat: creator, administrator, member, restricted, left, kicked."""
        found = _object(apihelper.get_chat_member(self._token, chat_id, user_id))
        return str(found.get("status", ""))

    def answer_callback(self, callback_id: str, text: str) -> None:
        """End the wait of whoever pressed a button, with up to 200 letters."""
        apihelper.answer_callback_query(self._token, callback_id, text)

    def file(self, file_id: str) -> TelegramFile:
        """Where a file is to be fetched; Refused 400 when it is larger than Telegram gives."""
        found = _object(apihelper.get_file(self._token, file_id))
        path, size = found.get("file_path"), found.get("file_size")
        if not isinstance(path, str) or not path:
            raise Unreachable("a file without a path", may_have_arrived=False)
        return TelegramFile(path, size if type(size) is int and size >= 0 else None)

    def download(self, file: TelegramFile, draft: Draft) -> None:
        """Write a file's bytes to a draft as they come; the draft's own limit bounds them.

        A local Bot API server gives a path on its own disk: when it is ours too, it is read.
        AppError too_large or disk_full of the draft.
        """
        if not (self._is_local and _copy(Path(file.path), draft)):
            path = quote(file.path.lstrip("/"))
            url = f"{self._base}/file/bot{self._token}/{path}"
            size = file.size or _UNKNOWN_SIZE_BYTES
            seconds = sum(self._timeout) + size / _LEAST_BYTES_PER_SECOND
            for chunk in self._wire.fetch(url, self._timeout, seconds):
                draft.write(chunk)
        if file.size is not None and draft.size != file.size:
            raise Unreachable("a file that is cut off", may_have_arrived=False)

    def set_commands(self, commands: Sequence[tuple[str, str]], language: str | None) -> None:
        """The commands that Telegram offers, each with its line; language None: for all others."""
        apihelper.set_my_commands(
            self._token,
            [types.BotCommand(name, line) for name, line in commands],
            language_code=language,
        )

    def set_webhook(self, url: str, secret: str) -> None:
        """Have updates brought to an address, with the secret in a header of each."""
        apihelper.set_webhook(self._token, url, allowed_updates=list(NEWS), secret_token=secret)

    def delete_webhook(self) -> None:
        """Have updates kept until they are asked for; none is dropped."""
        apihelper.delete_webhook(self._token)


def _copy(path: Path, draft: Draft) -> bool:
    """Write a file of this disk to the draft; False when it is not here."""
    try:
        if not (path.is_absolute() and path.is_file()):
            return False
        source = path.open("rb")
    except (OSError, ValueError):
        return False
    with source:
        while chunk := source.read(_CHUNK_BYTES):
            draft.write(chunk)
    return True


def _reply(message_id: int | None) -> types.ReplyParameters | None:
    if message_id is None:
        return None
    return types.ReplyParameters(message_id, allow_sending_without_reply=True)


def _keyboard(buttons: Buttons | None) -> types.InlineKeyboardMarkup | None:
    if not buttons:
        return None
    return types.InlineKeyboardMarkup(
        [
            [types.InlineKeyboardButton(label, callback_data=data) for label, data in row]
            for row in buttons
        ]
    )


def _no_preview() -> types.LinkPreviewOptions:
    return types.LinkPreviewOptions(is_disabled=True)


def _object(found: object) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise Unreachable("an answer without an object", may_have_arrived=True)
    return found


def _number(found: Mapping[str, Any], key: str) -> int:
    value = found.get(key)
    if type(value) is not int:
        raise Unreachable(f"an answer without {key}", may_have_arrived=True)
    return value
