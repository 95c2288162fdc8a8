"""What all parts of the double share: the time, the lock, the files, the updates and the bot."""

import itertools
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.telegram.double.clock import Clock
from tests.telegram.double.files import Files
from tests.telegram.double.messages import Message, User
from tests.telegram.double.updates import Updates

if TYPE_CHECKING:
    from tests.telegram.double.chats import Chat

PRESS_SECONDS = 150.0
"""How long the update of a pressed button is kept."""


@dataclass(eq=False)
class Press:
    """A button that was pressed; answer is what answerCallbackQuery said, None until then."""

    id: str
    data: str
    by: User
    message: Message
    at: float
    answer: str | None = None
    is_alert: bool = False


@dataclass(eq=False)
class Network:
    """The state of the double; whoever touches it holds the lock."""

    clock: Clock
    lock: threading.RLock
    files: Files
    updates: Updates
    bot: User
    sees_all: bool = False
    chats: "dict[int, Chat]" = field(default_factory=dict)
    presses: dict[str, Press] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)
    """The people of whom the bot has seen anything."""
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(500_000_001))
    message_ids: Iterator[int] = field(default_factory=lambda: itertools.count(101))
    """Private chats and basic groups count their messages together."""

    def moment(self) -> int:
        """Now, in whole seconds."""
        return int(self.clock.now())

    def push(self, kind: str, body: Mapping[str, Any], queue: int, **more: float) -> None:
        """Tell the bot something."""
        self.updates.push(kind, body, queue, **more)

    def press(self, data: str, by: User, message: Message) -> Press:
        """Somebody presses a button."""
        press = Press(str(next(self.ids) * 7919), data, by, message, self.clock.now())
        self.presses[press.id] = press
        body = {
            "id": press.id,
            "from": by.described(),
            "message": message.described(),
            "chat_instance": str(abs(message.chat.id) * 31),
            "data": data,
        }
        self.push("callback_query", body, by.id + (3 << 33), seconds=PRESS_SECONDS)
        return press
