"""Those who drive the double: people, and the groups and channels that they keep."""

from collections.abc import Mapping
from typing import Any

from tests.telegram.double.chats import Channel, Chat, Group, PrivateChat
from tests.telegram.double.messages import Message, User
from tests.telegram.double.network import Network, Press
from tests.telegram.double.sending import Sender

ANONYMOUS = User(1087968824, "Group", username="GroupAnonymousBot", is_bot=True)
"""Who an anonymous administrator's messages come from."""


class Person(User, Sender):
    """Somebody with a telephone; what is sent without `to` goes to the bot."""

    def __init__(
        self, network: Network, name: str, language: str = "en", username: str = ""
    ) -> None:
        super().__init__(next(network.ids), name, language=language, username=username)
        self.network = network
        self.chat = PrivateChat(network, self)

    def starts(self, parameter: str = "") -> Message:
        """Open the bot and press Start."""
        return self.says(f"/start {parameter}".strip())

    def deletes(self, message: Message) -> None:
        """Delete a message, for all; the bot is not told."""
        message.chat.deletes(message)

    def presses(self, message: Message, label: str) -> Press:
        """Press the button of that label under a message; AssertionError when there is none."""
        with self.network.lock:
            rows = (message.markup or {}).get("inline_keyboard", [])
            data = {button["text"]: button.get("callback_data") for row in rows for button in row}
            assert data.get(label), f"no button {label!r} among {list(data)}"
            return self.network.press(data[label], self, message)

    def blocks_bot(self) -> None:
        """Stop the bot: it is told, and may write no more."""
        with self.network.lock:
            self.chat.begin()
            self.chat.status_becomes("kicked", self)

    def unblocks_bot(self) -> None:
        """Restart the bot, as pressing its button does: a /start does not come along."""
        with self.network.lock:
            self.chat.status_becomes("member", self)

    def deletes_account(self) -> None:
        """Be no more; the bot is not told."""
        with self.network.lock:
            self.chat.has_account = False

    def _begin(self, chat: Chat | None) -> Chat:
        if chat in (None, self.chat):
            self.chat.begin()
        return chat or self.chat

    def _signature(self, chat: Chat) -> Mapping[str, Any]:
        return {"sender": self}


class SharedChat(Sender, Chat):
    """What groups and channels have in common: somebody keeps them, and lets the bot in."""

    def adds_bot(self, by: Person, *, is_admin: bool = False) -> None:
        """Let the bot in; it is told."""
        with self.network.lock:
            self.status_becomes("administrator" if is_admin else "member", by)
            self._tell_of({"new_chat_members": [self.network.bot.described()]}, by)

    def promotes_bot(self, by: Person) -> None:
        """Make the bot an administrator; it is told."""
        with self.network.lock:
            self.status_becomes("administrator", by)

    def demotes_bot(self, by: Person) -> None:
        """Make the bot a plain member; it is told."""
        with self.network.lock:
            self.status_becomes("member", by)

    def kicks_bot(self, by: Person) -> None:
        """Throw the bot out; it is told."""
        with self.network.lock:
            self.status_becomes("kicked", by)
            self._tell_of({"left_chat_member": self.network.bot.described()}, by)

    def _tell_of(self, content: dict[str, Any], by: Person) -> Message:
        """A service message."""
        message = self.add(content, by)
        self.tell(message)
        return message


class PeopleGroup(SharedChat, Group):
    """A group; what it sends itself is by an anonymous administrator."""

    def joins(self, *people: Person, status: str = "member") -> None:
        """Let people in, as member, administrator or creator; the bot is not told."""
        with self.network.lock:
            self.members |= {person.id: (person, status) for person in people}

    def opens_topic(self, name: str, by: Person) -> int:
        """A topic of a forum; gives its number."""
        with self.network.lock:
            message = self.add({"forum_topic_created": {"name": name, "icon_color": 7322096}}, by)
            message.thread, message.is_in_topic = message.id, True
            self.topics[message.id] = name
            self.tell(message)
            return message.id

    def closes_topic(self, topic: int) -> None:
        """Nobody but an administrator may write there any more."""
        with self.network.lock:
            self.closed_topics.add(topic)

    def deletes_topic(self, topic: int) -> None:
        """A topic goes with all that is in it."""
        with self.network.lock:
            self.topics.pop(topic, None)
            for message in [m for m in self.messages.values() if topic in (m.thread, m.id)]:
                self.deletes(message)

    def mutes(self, *what: str) -> None:
        """Take away the right to send: "text messages", "documents"."""
        with self.network.lock:
            self.muted |= set(what)

    def is_deleted_by_owner(self) -> None:
        """The group is no more; the bot is not told."""
        with self.network.lock:
            self.is_gone = True

    def becomes_supergroup(self, by: Person) -> "PeopleGroup":
        """Move to a new number; both chats tell of it, and the old one takes nothing more."""
        with self.network.lock:
            number = -1_000_000_000_000 - next(self.network.ids)
            new = PeopleGroup(self.network, number, self.title, is_super=True)
            new.members, new.bot_status = dict(self.members), self.bot_status
            self.moved_to = new
            self._tell_of({"migrate_to_chat_id": new.id}, by)
            new._tell_of({"migrate_from_chat_id": self.id}, by)
            return new

    def _begin(self, chat: Chat | None) -> Chat:
        return chat or self

    def _signature(self, chat: Chat) -> Mapping[str, Any]:
        return {"sender": ANONYMOUS, "sender_chat": self}


class PeopleChannel(SharedChat, Channel):
    """A channel; what it sends are its posts."""

    def _begin(self, chat: Chat | None) -> Chat:
        return chat or self

    def _signature(self, chat: Chat) -> Mapping[str, Any]:
        return {"sender_chat": self}

    def _tell_of(self, content: dict[str, Any], by: Person) -> Message:
        # A channel does not tell who came and went.
        return self.add(content, by)
