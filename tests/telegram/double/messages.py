"""Users and messages, as Telegram keeps them and as it tells of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tests.telegram.double.chats import Chat

MEDIA = ("voice", "audio", "video", "video_note", "document", "photo", "animation")


@dataclass(eq=False)
class User:
    """Somebody with an account, or the bot."""

    id: int
    first_name: str
    last_name: str = ""
    username: str = ""
    language: str = ""
    is_bot: bool = False

    def described(self) -> dict[str, Any]:
        """A User of the Bot API."""
        said = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        more = {
            "last_name": self.last_name,
            "username": self.username,
            "language_code": self.language,
        }
        return said | {name: value for name, value in more.items() if value}


@dataclass(eq=False)
class Message:
    """A message of a chat; content is the members of its JSON that hold what was sent.

    thread is a topic's number, or in a supergroup without topics that of the replies' root;
    was keeps the texts that edits replaced, the oldest first.
    """

    id: int
    chat: "Chat"
    date: int
    content: dict[str, Any]
    sender: User | None = None
    sender_chat: "Chat | None" = None
    reply_to: Self | None = None
    thread: int | None = None
    is_in_topic: bool = False
    album: str = ""
    origin: dict[str, Any] | None = None
    markup: dict[str, Any] | None = None
    edit_date: int | None = None
    is_deleted: bool = False
    was: list[str] = field(default_factory=list)
    data: bytes | None = field(default=None, repr=False)
    """The bytes of a file that the bot sent."""

    @property
    def is_bots(self) -> bool:
        """True when the bot wrote it."""
        return self.sender is self.chat.network.bot

    @property
    def text(self) -> str:
        """What it says: its text or its caption."""
        return str(self.content.get("text", self.content.get("caption", "")))

    @property
    def media(self) -> str:
        """What kind of file it holds, empty when none."""
        return next((kind for kind in MEDIA if kind in self.content), "")

    @property
    def file_name(self) -> str:
        """The name of its file, empty when none."""
        return str(self.content.get(self.media, {}).get("file_name", "")) if self.media else ""

    @property
    def buttons(self) -> Sequence[str]:
        """The labels under it, row after row."""
        rows = (self.markup or {}).get("inline_keyboard", [])
        return [button["text"] for row in rows for button in row]

    def described(self, with_reply: bool = True) -> dict[str, Any]:
        """A Message of the Bot API."""
        said: dict[str, Any] = {"message_id": self.id}
        is_post = self.chat.kind == "channel"
        if self.sender and not is_post:
            said["from"] = self.sender.described()
        if self.sender_chat:
            said["sender_chat"] = self.sender_chat.described()
        said |= {"chat": self.chat.described(), "date": self.date}
        more = {
            "edit_date": self.edit_date,
            "message_thread_id": self.thread,
            "media_group_id": self.album,
            "is_topic_message": self.is_in_topic,
            "reply_markup": self.markup,
        }
        said |= {name: value for name, value in more.items() if value}
        if self.origin:
            said |= {"forward_origin": self.origin, "forward_date": self.origin["date"]}
        if with_reply and self.reply_to and not self.reply_to.is_deleted:
            said["reply_to_message"] = self.reply_to.described(with_reply=False)
        return said | self.content
