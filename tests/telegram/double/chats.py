"""Chats: what they show, who is in them, and whether the bot may write there."""

import itertools
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from tests.telegram.double.errors import bad_request, forbidden
from tests.telegram.double.messages import Message, User
from tests.telegram.double.network import Network

MESSAGE_UPDATES = ("message", "edited_message")
POST_UPDATES = ("channel_post", "edited_channel_post")


class Access(IntEnum):
    """What a method needs of a chat, each more than the one before."""

    READ = 1
    EDIT = 2
    WRITE = 3


class Chat:
    """A chat; bot_status is a ChatMember's: member, administrator, restricted, left or kicked."""

    kind = ""
    updates = MESSAGE_UPDATES

    def __init__(self, network: Network, number: int, title: str, username: str = "") -> None:
        self.network = network
        self.id = number
        self.title = title
        self.username = username
        self.bot_status = "left"
        self.messages: dict[int, Message] = {}
        self.deleted: list[Message] = []
        self.actions: list[str] = []
        self.message_ids = network.message_ids
        self.topics: dict[int, str] = {}
        self.closed_topics: set[int] = set()
        network.chats[number] = self

    def described(self) -> dict[str, Any]:
        """A Chat of the Bot API."""
        said = {"id": self.id, "type": self.kind, "title": self.title}
        return said | ({"username": self.username} if self.username else {})

    @property
    def shown(self) -> Sequence[Message]:
        """What stands in the chat now, the oldest first, service messages aside."""
        with self.network.lock:
            return [
                self.messages[number] for number in sorted(self.messages) if self._is_shown(number)
            ]

    @property
    def from_bot(self) -> Sequence[Message]:
        """What stands in the chat now and is the bot's."""
        return [message for message in self.shown if message.is_bots]

    @property
    def texts(self) -> Sequence[str]:
        """What the bot's messages say now."""
        return [message.text for message in self.from_bot]

    def answers_to(self, message: Message) -> Sequence[Message]:
        """The bot's messages that stand as replies to that one."""
        return [answer for answer in self.from_bot if answer.reply_to is message]

    def deletes(self, message: Message) -> None:
        """Somebody deletes a message; the bot is not told."""
        with self.network.lock:
            message.is_deleted = True
            self.messages.pop(message.id, None)
            self.deleted.append(message)

    def check(self, access: Access) -> None:
        """ApiError when the bot may not do that here."""
        raise NotImplementedError

    def check_sending(self, what: str, thread: int | None = None) -> None:
        """ApiError when the bot may not send a text or a document; check() passed."""
        if thread in self.closed_topics:
            raise bad_request("TOPIC_CLOSED")

    def add(self, content: dict[str, Any], sender: User | None = None, **fields: Any) -> Message:
        """Put a message into the chat; nobody is told."""
        message = Message(
            id=next(self.message_ids),
            chat=self,
            date=self.network.moment(),
            content=content,
            sender=sender,
            **fields,
        )
        self.messages[message.id] = message
        return message

    def tell(self, message: Message, is_edited: bool = False) -> None:
        """Tell the bot of a message, if it is there to see it."""
        if self.is_seen(message):
            if message.sender:
                self.network.known.add(message.sender.id)
            self.network.push(self.updates[is_edited], message.described(), self.id)

    def is_seen(self, message: Message) -> bool:
        """True when the bot is shown that message."""
        return self.bot_status in ("member", "administrator", "restricted")

    def status_becomes(self, status: str, by: User) -> None:
        """What the bot is in this chat changes by somebody's hand, and it is told."""
        was, self.bot_status = self.bot_status, status
        if was == status:
            return
        body = {
            "chat": self.described(),
            "from": by.described(),
            "date": self.network.moment(),
            "old_chat_member": member(self.network.bot, was),
            "new_chat_member": member(self.network.bot, status),
        }
        self.network.push("my_chat_member", body, self.id + (5 << 33))

    def _is_shown(self, number: int) -> bool:
        content = self.messages[number].content
        return "text" in content or bool(self.messages[number].media) or "sticker" in content


class PrivateChat(Chat):
    """A person alone with the bot; it begins when the person writes."""

    kind = "private"

    def __init__(self, network: Network, owner: User) -> None:
        super().__init__(network, owner.id, owner.first_name, owner.username)
        self.owner = owner
        self.is_begun = False
        self.has_account = True

    def described(self) -> dict[str, Any]:
        """A Chat of the Bot API."""
        said = {"id": self.id, "type": self.kind, "first_name": self.owner.first_name}
        more = {"last_name": self.owner.last_name, "username": self.owner.username}
        return said | {name: value for name, value in more.items() if value}

    def begin(self) -> None:
        """The person writes, so the bot may."""
        if not self.is_begun:
            self.is_begun = True
            self.bot_status = "member"

    def check(self, access: Access) -> None:
        """ApiError as for any chat."""
        if not self.is_begun and self.id not in self.network.known:
            raise bad_request("chat not found")
        if access < Access.EDIT:
            return
        if not self.has_account:
            raise forbidden("user is deactivated")
        if not self.is_begun:
            raise forbidden("bot can't initiate conversation with a user")

    def check_sending(self, what: str, thread: int | None = None) -> None:
        """ApiError as for any chat."""
        if self.bot_status == "kicked":
            raise forbidden("bot was blocked by the user")


class Group(Chat):
    """A basic group, or a supergroup; a forum is a supergroup with topics."""

    def __init__(
        self,
        network: Network,
        number: int,
        title: str,
        username: str = "",
        *,
        is_super: bool,
        is_forum: bool = False,
    ) -> None:
        super().__init__(network, number, title, username)
        self.kind = "supergroup" if is_super else "group"
        self.is_forum = is_forum
        self.members: dict[int, tuple[User, str]] = {}
        self.moved_to: Group | None = None
        self.is_gone = False
        self.muted: set[str] = set()
        if is_super:
            self.message_ids = itertools.count(1)

    @property
    def is_super(self) -> bool:
        """True for a supergroup."""
        return self.kind == "supergroup"

    def described(self) -> dict[str, Any]:
        """A Chat of the Bot API."""
        more = {"is_forum": True} if self.is_forum else {}
        if not self.is_super:
            more["all_members_are_administrators"] = False
        return super().described() | more

    def check(self, access: Access) -> None:
        """ApiError as for any chat."""
        if self.moved_to and access >= Access.WRITE:
            raise bad_request(
                "group chat was upgraded to a supergroup chat", migrate_to_chat_id=self.moved_to.id
            )
        if self.is_gone and access >= Access.WRITE:
            raise forbidden("the group chat was deleted")
        least = Access.READ if self.is_super and not self.username else Access.EDIT
        if self.bot_status == "kicked" and (self.is_super or access >= Access.EDIT):
            raise forbidden(f"bot was kicked from the {self.kind} chat")
        if self.bot_status == "left" and access >= least:
            raise forbidden(f"bot is not a member of the {self.kind} chat")

    def check_sending(self, what: str, thread: int | None = None) -> None:
        """ApiError as for any chat."""
        if what in self.muted and self.bot_status != "administrator":
            raise bad_request(f"not enough rights to send {what} to the chat")
        super().check_sending(what, thread)

    def is_seen(self, message: Message) -> bool:
        """True when the bot is shown that message: privacy mode leaves little."""
        if self.moved_to and "migrate_to_chat_id" not in message.content:
            return False
        if not super().is_seen(message):
            return "left_chat_member" in message.content and self.bot_status != "left"
        if self.network.sees_all or self.bot_status == "administrator":
            return True
        is_service = not self._is_shown(message.id) and "text" not in message.content
        is_to_bot = message.reply_to is not None and message.reply_to.is_bots
        return is_service or is_to_bot or _is_addressed(message.text, self.network.bot.username)


class Channel(Chat):
    """A channel; the bot gets its posts when it is an administrator there."""

    kind = "channel"
    updates = POST_UPDATES

    def __init__(self, network: Network, number: int, title: str, username: str = "") -> None:
        super().__init__(network, number, title, username)
        self.message_ids = itertools.count(1)

    def check(self, access: Access) -> None:
        """ApiError as for any chat."""
        if self.bot_status == "kicked":
            raise forbidden("bot was kicked from the channel chat")
        if self.bot_status == "left" and (access >= Access.EDIT or not self.username):
            raise forbidden("bot is not a member of the channel chat")

    def check_sending(self, what: str, thread: int | None = None) -> None:
        """ApiError as for any chat."""
        if self.bot_status != "administrator":
            raise bad_request("need administrator rights in the channel chat")


def member(user: User, status: str) -> Mapping[str, Any]:
    """A ChatMember of the Bot API."""
    said: dict[str, Any] = {"user": user.described(), "status": status}
    if status == "administrator":
        rights = ("manage_chat", "delete_messages", "post_messages", "edit_messages")
        said |= {f"can_{right}": True for right in rights}
        said |= {"can_be_edited": False, "is_anonymous": False}
    if status == "restricted":
        said |= {"is_member": True, "can_send_messages": False, "until_date": 0}
    if status == "kicked":
        said["until_date"] = 0
    return said


def _is_addressed(text: str, username: str) -> bool:
    """True for a command that may be meant for the bot, and for a mention of it."""
    words = text.split()
    if words and words[0].startswith("/"):
        _, _, meant = words[0].partition("@")
        return not meant or meant.lower() == username.lower()
    return f"@{username.lower()}" in text.lower()
