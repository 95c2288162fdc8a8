"""The verbs of whoever sends: a person, an anonymous administrator of a group, a channel."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from tests.telegram.double.chats import Channel, Chat
from tests.telegram.double.files import Source, StoredFile
from tests.telegram.double.messages import Message, User
from tests.telegram.double.network import Network

_albums = itertools.count(13_900_000_000_000_001)
_THUMBNAIL = {"file_id": "AAQCTHUMB", "file_unique_id": "AQADTHUMB", "width": 90, "height": 90}


class Where(TypedDict, total=False):
    """Where a message goes and what hangs on it.

    to: a chat, the sender's own when not said. topic: a forum topic's number. forwarded_from: a
    User, a Channel, or the name of somebody who hides behind it.
    """

    to: Chat
    replying: Message
    topic: int
    forwarded_from: "User | Channel | str"
    caption: str
    album: str


class Sender:
    """Sends; size, in bytes, is what Telegram says of a file when that is not its own."""

    network: Network

    def says(self, text: str, **where: Unpack[Where]) -> Message:
        """A text, or a command."""
        return self._post({"text": text, **_entities(text)}, where)

    def sends_voice(
        self,
        source: Source,
        *,
        seconds: int = 3,
        size: int | None = None,
        media_type: str = "audio/ogg",
        **where: Unpack[Where],
    ) -> Message:
        """A voice message."""
        file = self._keep(source, "voice", ".oga", size)
        return self._send("voice", file, {"duration": seconds, "mime_type": media_type}, where)

    def sends_audio(
        self,
        source: Source,
        name: str | None = None,
        *,
        seconds: int = 3,
        size: int | None = None,
        media_type: str = "audio/mpeg",
        **where: Unpack[Where],
    ) -> Message:
        """A piece of music, as the apps take every mp3 and m4a to be."""
        name = _name(source, name, "track.mp3")
        file = self._keep(source, "music", Path(name).suffix, size)
        more = {"duration": seconds, "mime_type": media_type, "file_name": name}
        return self._send("audio", file, more, where)

    def sends_video(
        self,
        source: Source,
        name: str | None = None,
        *,
        seconds: int = 3,
        size: int | None = None,
        media_type: str = "video/mp4",
        **where: Unpack[Where],
    ) -> Message:
        """A video."""
        name = _name(source, name, "video.mp4")
        file = self._keep(source, "videos", Path(name).suffix, size)
        more = {"duration": seconds, "width": 640, "height": 360, "mime_type": media_type}
        return self._send("video", file, more | {"file_name": name}, where)

    def sends_video_note(
        self, source: Source, *, seconds: int = 3, size: int | None = None, **where: Unpack[Where]
    ) -> Message:
        """A round video: it has no name, no type and no caption."""
        file = self._keep(source, "video_notes", ".mp4", size)
        more = {"duration": seconds, "length": 240, "thumbnail": _THUMBNAIL}
        return self._send("video_note", file, more, where)

    def sends_document(
        self,
        source: Source,
        name: str | None = None,
        *,
        size: int | None = None,
        media_type: str = "application/octet-stream",
        **where: Unpack[Where],
    ) -> Message:
        """A file as it is; an empty name or type is left out, as some apps do."""
        name = _name(source, name, "file.bin")
        file = self._keep(source, "documents", Path(name).suffix, size)
        more = {"file_name": name, "mime_type": media_type}
        return self._send("document", file, {k: v for k, v in more.items() if v}, where)

    def sends_photo(self, source: Source = b"\xff\xd8\xff", **where: Unpack[Where]) -> Message:
        """A picture, in the sizes that Telegram makes of it."""
        file = self._keep(source, "photos", ".jpg", None)
        sizes = [file.described() | {"width": side, "height": side} for side in (90, 320)]
        return self._post({"photo": sizes, **_caption(where)}, where)

    def sends_animation(self, source: Source = b"GIF89a", **where: Unpack[Where]) -> Message:
        """A GIF: it is told as an animation and as a document."""
        file = self._keep(source, "animations", ".mp4", None)
        said = file.described() | {"file_name": "cat.mp4", "mime_type": "video/mp4"}
        moving = said | {"duration": 2, "width": 90, "height": 90}
        return self._post({"animation": moving, "document": said, **_caption(where)}, where)

    def sends(self, content: dict[str, Any], **where: Unpack[Where]) -> Message:
        """Anything else, as the members of its JSON: a sticker, a contact, or what no one knows."""
        return self._post(content, where)

    def sends_album(
        self,
        sources: Sequence[Source],
        kind: str = "audio",
        *,
        captions: Sequence[str] = (),
        **where: Unpack[Where],
    ) -> Sequence[Message]:
        """Several files at once: a message each, the first one captioned; kind as in sends_…"""
        where["album"] = str(next(_albums))
        send = getattr(self, f"sends_{kind}")
        with self.network.lock:
            pairs = itertools.zip_longest(sources, captions, fillvalue="")
            return [send(source, caption=caption, **where) for source, caption in pairs]

    def edits(self, message: Message, text: str) -> None:
        """Change a message's text or caption."""
        with self.network.lock:
            is_media = bool(message.media)
            message.was.append(message.text)
            message.content["caption" if is_media else "text"] = text
            message.edit_date = self.network.moment()
            message.chat.tell(message, is_edited=True)

    def _keep(self, source: Source, folder: str, suffix: str, size: int | None) -> StoredFile:
        with self.network.lock:
            return self.network.files.add(source, folder, suffix, size)

    def _send(self, kind: str, file: StoredFile, more: Mapping[str, Any], where: Where) -> Message:
        caption = {} if kind == "video_note" else _caption(where)
        return self._post({kind: {**more, **file.described()}, **caption}, where)

    def _post(self, content: dict[str, Any], where: Where) -> Message:
        with self.network.lock:
            chat = self._begin(where.get("to"))
            replying, topic = where.get("replying"), where.get("topic")
            fields: dict[str, Any] = {
                "album": where.get("album", ""),
                "reply_to": replying or chat.messages.get(topic or 0),
                "origin": _origin(where.get("forwarded_from"), self.network.moment()),
                "thread": topic or thread_of(chat, replying),
                "is_in_topic": topic is not None,
            }
            message = chat.add(content, **fields, **self._signature(chat))
            chat.tell(message)
            return message

    def _begin(self, chat: Chat | None) -> Chat:
        """The chat that a message goes to."""
        raise NotImplementedError

    def _signature(self, chat: Chat) -> Mapping[str, Any]:
        """Who a message there is by."""
        raise NotImplementedError


def thread_of(chat: Chat, replying: Message | None) -> int | None:
    """The thread that a reply belongs to: its topic's, or in a supergroup that of the root."""
    if replying is None or chat.kind != "supergroup":
        return None
    return replying.thread or (None if replying.is_in_topic else replying.id)


def _caption(where: Where) -> dict[str, str]:
    return {"caption": where["caption"]} if where.get("caption") else {}


def _name(source: Source, name: str | None, default: str) -> str:
    if name is not None:
        return name
    return source.name if isinstance(source, Path) else default


def _entities(text: str) -> dict[str, Any]:
    """The entities that Telegram finds in a text: of a command only that."""
    word = text.split(maxsplit=1)[0] if text.startswith("/") else ""
    if not word:
        return {}
    return {"entities": [{"type": "bot_command", "offset": 0, "length": len(word)}]}


def _origin(source: "User | Channel | str | None", date: int) -> dict[str, Any] | None:
    if source is None:
        return None
    if isinstance(source, str):
        said: dict[str, Any] = {"type": "hidden_user", "sender_user_name": source}
    elif isinstance(source, Channel):
        said = {"type": "channel", "chat": source.described(), "message_id": 7}
    else:
        said = {"type": "user", "sender_user": source.described()}
    return said | {"date": date - 60}
