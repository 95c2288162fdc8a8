"""The methods that change or take away what stands in a chat, and that answer a pressed button."""

from typing import TYPE_CHECKING, Any

from tests.telegram.double.chats import Access, Group, PrivateChat
from tests.telegram.double.errors import bad_request
from tests.telegram.double.keyboards import check_by_server, check_preview, markup_of
from tests.telegram.double.markup import (
    LONGEST_CAPTION,
    LONGEST_TEXT,
    caption_of,
    length,
    text_of,
    trimmed,
)
from tests.telegram.double.messages import Message
from tests.telegram.double.methods.finding import find_chat, find_message
from tests.telegram.double.methods.registry import Method
from tests.telegram.double.query import Query

if TYPE_CHECKING:
    from tests.telegram.double.telegram import Telegram

DELETABLE_SECONDS = 48 * 3600
ANSWER_SECONDS = 60
"""How long a pressed button waits for its answer; Telegram does not say, reports tell of a minute
or more."""

_LONGEST_ANSWER = 200
_MOST_AT_ONCE = 100
_UNCHANGED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)


def edit_message_text(telegram: "Telegram", query: Query) -> Any:
    """Another text for a message; buttons that do not come along go."""
    check_preview(query)
    text = trimmed(text_of(query))
    markup = markup_of(query)
    message = _to_edit(telegram, query)
    if not text:
        raise bad_request("text must be non-empty")
    if "text" not in message.content:
        raise bad_request("there is no text in the message to edit")
    if length(text) > LONGEST_TEXT:
        raise bad_request("MESSAGE_TOO_LONG")
    return _change(telegram, message, "text", text, markup)


def edit_message_caption(telegram: "Telegram", query: Query) -> Any:
    """Another caption for a file; an empty one takes it away."""
    caption = trimmed(caption_of(query))
    markup = markup_of(query)
    message = _to_edit(telegram, query)
    if "text" in message.content:
        raise bad_request("there is no caption in the message to edit")
    if length(caption) > LONGEST_CAPTION:
        raise bad_request("message caption is too long")
    return _change(telegram, message, "caption", caption, markup)


def edit_message_reply_markup(telegram: "Telegram", query: Query) -> Any:
    """Other buttons under a message, or none."""
    markup = markup_of(query)
    message = _to_edit(telegram, query)
    name = "text" if "text" in message.content else "caption"
    return _change(telegram, message, name, message.text, markup)


def delete_message(telegram: "Telegram", query: Query) -> Any:
    """Take a message away, for all."""
    if not query.text("chat_id"):
        raise bad_request("Chat identifier is not specified")
    if not query.message_id():
        raise bad_request("Message identifier is not specified")
    message = find_message(telegram.network, query, Access.WRITE, "message to delete")
    _delete(telegram, message)
    return True


def delete_messages(telegram: "Telegram", query: Query) -> Any:
    """Take up to a hundred messages away; those that are gone do not matter."""
    numbers = query.value("message_ids", "message_ids")
    if not numbers:
        raise bad_request("Message identifiers are not specified")
    if not isinstance(numbers, list):
        raise bad_request("Expected an Array of message identifiers")
    if len(numbers) > _MOST_AT_ONCE:
        raise bad_request("Too many message identifiers specified")
    chat = find_chat(telegram.network, query.text("chat_id"), Access.WRITE)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int):
            raise bad_request("Message identifier must be a Number")
        if number in chat.messages:
            _delete(telegram, chat.messages[number])
    return True


def answer_callback_query(telegram: "Telegram", query: Query) -> Any:
    """End the wait of whoever pressed a button, with a word or without."""
    press = telegram.network.presses.get(str(query.number("callback_query_id")))
    now = telegram.network.clock.now()
    if press is None or press.answer is not None or now > press.at + ANSWER_SECONDS:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    if length(query.text("text")) > _LONGEST_ANSWER:
        raise bad_request("MESSAGE_TOO_LONG")
    press.answer, press.is_alert = query.text("text"), query.flag("show_alert")
    return True


def _to_edit(telegram: "Telegram", query: Query) -> Message:
    if not query.text("chat_id") and not query.message_id():
        if not query.text("inline_message_id"):
            raise bad_request("Message identifier is not specified")
        raise bad_request("MESSAGE_ID_INVALID")
    message = find_message(telegram.network, query, Access.EDIT, "message to edit")
    if not message.is_bots:
        raise bad_request("message can't be edited")
    message.chat.check_sending("edits")
    return message


def _change(
    telegram: "Telegram", message: Message, name: str, text: str, markup: Any
) -> dict[str, Any]:
    if text == message.text and (markup or None) == (message.markup or None):
        raise bad_request(_UNCHANGED)
    check_by_server(markup)
    telegram.limits.spend(message.chat.id, isinstance(message.chat, Group))
    if text != message.text:
        message.was.append(message.text)
    message.content[name] = text
    if not text:
        del message.content[name]
    message.markup = markup
    message.edit_date = telegram.network.moment()
    return message.described()


def _delete(telegram: "Telegram", message: Message) -> None:
    is_old = telegram.network.clock.now() > message.date + DELETABLE_SECONDS
    is_admin = message.chat.bot_status == "administrator"
    is_ours = message.is_bots or isinstance(message.chat, PrivateChat)
    if not is_ours and not is_admin:
        raise bad_request("message can't be deleted")
    if is_old and not (is_admin and not message.is_bots):
        raise bad_request("message can't be deleted for everyone")
    message.chat.deletes(message)


METHODS: dict[str, Method] = {
    "editMessageText": edit_message_text,
    "editMessageCaption": edit_message_caption,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
    "answerCallbackQuery": answer_callback_query,
}
