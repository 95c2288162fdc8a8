"""The methods that put messages into chats.

The order of the checks is the original's: first what it sees itself, then the chat, the topic and
the message to reply to, then what Telegram's servers refuse.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from tests.telegram.double.chats import Access, Chat, Group
from tests.telegram.double.errors import bad_request
from tests.telegram.double.files import StoredFile
from tests.telegram.double.keyboards import check_by_server, check_preview, markup_of, reply_of
from tests.telegram.double.markup import (
    LONGEST_CAPTION,
    LONGEST_TEXT,
    caption_of,
    length,
    text_of,
    trimmed,
)
from tests.telegram.double.messages import Message
from tests.telegram.double.methods.finding import find_chat, find_topic
from tests.telegram.double.methods.registry import Method
from tests.telegram.double.query import Attachment, Query
from tests.telegram.double.sending import thread_of

if TYPE_CHECKING:
    from tests.telegram.double.telegram import Telegram

_FOLDERS = {"document": "documents", "audio": "music", "voice": "voice", "video": "videos"}
_RIGHTS = {
    "document": "documents",
    "audio": "music",
    "voice": "voice messages",
    "video": "videos",
}
_ATTACHED = "attach://"
_ON_DISK = "file:/"


def send_message(telegram: "Telegram", query: Query) -> Any:
    """A text."""
    check_preview(query)
    text = text_of(query)

    def content() -> dict[str, Any]:
        kept = trimmed(text)
        if not kept:
            raise bad_request("text must be non-empty")
        if length(kept) > LONGEST_TEXT:
            raise bad_request("message is too long")
        return {"text": kept}

    return _send(telegram, query, "text messages", content).described()


def send_media(kind: str) -> Method:
    """The method that sends a kind of file."""

    def send(telegram: "Telegram", query: Query) -> Any:
        sent = _attached(telegram, query, kind)
        caption = caption_of(query)

        def content() -> dict[str, Any]:
            file, more = _stored(telegram, sent, kind)
            kept = trimmed(caption)
            if length(kept) > LONGEST_CAPTION:
                raise bad_request("message caption is too long")
            return {kind: more | file.described(), **({"caption": kept} if kept else {})}

        message = _send(telegram, query, _RIGHTS[kind], content)
        if isinstance(sent, Attachment):
            message.data = sent.data
        return message.described()

    return send


def send_chat_action(telegram: "Telegram", query: Query) -> Any:
    """What the bot is doing, shown for some seconds."""
    action = query.text("action").lower()
    if action not in _ACTIONS:
        raise bad_request("Wrong parameter action in request")
    chat = find_chat(telegram.network, query.text("chat_id"), Access.WRITE)
    chat.check_sending("actions", find_topic(chat, query))
    chat.actions.append(action)
    return True


def _send(
    telegram: "Telegram", query: Query, what: str, content: Callable[[], dict[str, Any]]
) -> Message:
    reply, markup = reply_of(query), markup_of(query)
    network = telegram.network
    chat = find_chat(network, query.text("chat_id"), Access.WRITE)
    topic = find_topic(chat, query)
    replied = None
    if reply.message_id:
        elsewhere = reply.chat_id and reply.chat_id != query.text("chat_id")
        where = find_chat(network, reply.chat_id, Access.READ) if elsewhere else chat
        replied = where.messages.get(reply.message_id)
        if replied is None and not reply.is_optional:
            raise bad_request("message to be replied not found")
        if replied is not None and where is not chat:
            replied = None
    chat.check_sending(what, topic)
    ready = content()
    check_by_server(markup)
    telegram.limits.spend(chat.id, isinstance(chat, Group))
    return _add(chat, ready, network.bot, replied, topic, markup)


def _add(
    chat: Chat,
    content: dict[str, Any],
    bot: Any,
    replied: Message | None,
    topic: int | None,
    markup: Mapping[str, Any] | None,
) -> Message:
    if topic is None and replied is not None and replied.is_in_topic:
        topic = replied.thread
    return chat.add(
        content,
        bot,
        reply_to=replied or chat.messages.get(topic or 0),
        thread=topic or thread_of(chat, replied),
        is_in_topic=topic is not None,
        markup=dict(markup) if markup else None,
        sender_chat=chat if chat.kind == "channel" else None,
    )


def _attached(telegram: "Telegram", query: Query, kind: str) -> Attachment | StoredFile:
    """The file of a request: one that came along, or one that Telegram has."""
    name = query.text(kind)
    if telegram.is_local and name.startswith(_ON_DISK):
        path = Path("/" + name.removeprefix(_ON_DISK).lstrip("/"))
        if not path.is_file():
            raise bad_request("wrong file identifier/HTTP URL specified")
        return Attachment(path.name, "", path.read_bytes())
    if name and not name.startswith(_ATTACHED):
        found = telegram.network.files.find(name)
        if found is None:
            raise bad_request("wrong file identifier/HTTP URL specified")
        return found
    sent = query.attachments.get(name.removeprefix(_ATTACHED) if name else kind)
    if sent is None:
        raise bad_request(f"There is no {kind} in the request")
    return sent


def _stored(
    telegram: "Telegram", sent: Attachment | StoredFile, kind: str
) -> tuple[StoredFile, dict[str, Any]]:
    more: dict[str, Any] = {} if kind == "document" else {"duration": 0}
    if isinstance(sent, StoredFile):
        return replace(sent), more
    if not sent.data:
        raise bad_request("file must be non-empty")
    suffix = PurePath(sent.name).suffix
    file = telegram.network.files.add(sent.data, _FOLDERS[kind], suffix)
    named = {"file_name": sent.name, "mime_type": sent.media_type}
    return file, more | {name: value for name, value in named.items() if value}


_ACTIONS = frozenset(
    (
        "cancel",
        "typing",
        "record_video",
        "upload_video",
        "record_audio",
        "record_voice",
        "upload_audio",
        "upload_voice",
        "upload_photo",
        "upload_document",
        "choose_sticker",
        "pick_up_location",
        "find_location",
        "record_video_note",
        "upload_video_note",
    )
)

METHODS: dict[str, Method] = {
    "sendMessage": send_message,
    "sendChatAction": send_chat_action,
    **{f"send{kind.capitalize()}": send_media(kind) for kind in _FOLDERS},
}
