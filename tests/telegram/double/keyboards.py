"""What hangs on a message of the bot's: the buttons under it, and the message it answers.

Source: the original's get_reply_markup and get_reply_parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.telegram.double.errors import bad_request
from tests.telegram.double.query import Query, member

MOST_CALLBACK_BYTES = 64
_MOST_BUTTONS = 100
_OTHER_ACTIONS = ("switch_inline_query", "switch_inline_query_current_chat", "copy_text", "web_app")
_SWITCHES = ("remove_keyboard", "force_reply", "selective", "resize_keyboard", "one_time_keyboard")
_SCHEMES = ("http", "https", "tg", "ton", "tonsite")


@dataclass(frozen=True)
class ReplyTo:
    """The message that one answers, 0 for none; is_optional: it may be gone."""

    message_id: int
    chat_id: str
    is_optional: bool


def reply_of(query: Query) -> ReplyTo:
    """What reply_parameters, or the older arguments, say; ApiError when they are malformed."""
    if not query.has("reply_parameters"):
        number = query.message_id("reply_to_message_id")
        return ReplyTo(number, "", query.flag("allow_sending_without_reply"))
    found = query.value("reply_parameters", "reply parameters")
    if found is not None and not isinstance(found, dict):
        raise bad_request("Object expected as reply parameters")
    if not found:
        return ReplyTo(0, "", False)
    chat_id = member(found, "chat_id", str)
    number = member(found, "message_id", int, required=True)
    is_optional = member(found, "allow_sending_without_reply", bool)
    member(found, "quote", str)
    return ReplyTo(max(number, 0), chat_id, is_optional)


def check_preview(query: Query) -> None:
    """ApiError for malformed link_preview_options."""
    found = query.value("link_preview_options", "link preview options")
    if found is None:
        return
    if not isinstance(found, dict):
        raise bad_request("Object expected as link preview options")
    for name in ("is_disabled", "prefer_small_media", "prefer_large_media", "show_above_text"):
        member(found, name, bool)
    member(found, "url", str)


def markup_of(query: Query) -> Mapping[str, Any] | None:
    """The inline keyboard of a request, None for none or another kind; ApiError when malformed."""
    found = query.value("reply_markup", "reply keyboard markup")
    if found is None:
        return None
    if not isinstance(found, dict):
        raise bad_request("Object expected as reply markup")
    member(found, "keyboard", list)
    rows = member(found, "inline_keyboard", list)
    for row in rows:
        if not isinstance(row, list):
            raise bad_request(
                'Field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays'
            )
        for button in row:
            _check_button(button)
    for name in _SWITCHES:
        member(found, name, bool)
    rows = [row for row in rows if row]
    return {"inline_keyboard": rows} if rows else None


def check_by_server(markup: Mapping[str, Any] | None) -> None:
    """ApiError for what only Telegram's servers refuse, so only for a request that is well else."""
    buttons = [button for row in (markup or {}).get("inline_keyboard", []) for button in row]
    if len(buttons) > _MOST_BUTTONS:
        raise bad_request("reply markup is too long")
    for button in buttons:
        url = button.get("url", "")
        if url and (not urlsplit(url).scheme or "." not in url):
            raise bad_request(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
        if url and urlsplit(url).scheme not in _SCHEMES:
            reason = "Unsupported URL protocol"
            raise bad_request(f"inline keyboard button URL '{url}' is invalid: {reason}")
        if len(button.get("callback_data", "").encode()) > MOST_CALLBACK_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")


def _check_button(button: object) -> None:
    where = "can't parse inline keyboard button: "
    if not isinstance(button, dict):
        raise bad_request(f"{where}InlineKeyboardButton must be an Object")
    for name in ("text", "url", "callback_data"):
        value = button.get(name)
        if value is None and name == "text":
            raise bad_request(f'{where}Can\'t find field "text"')
        if value is not None and not isinstance(value, str):
            raise bad_request(f'{where}Field "{name}" must be of type String')
    if not any(button.get(name) for name in ("url", "callback_data", *_OTHER_ACTIONS)):
        raise bad_request(f"{where}Text buttons are unallowed in the inline keyboard")
