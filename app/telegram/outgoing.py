"""All that the bot sends: each in its turn, after every rest, and to where the chat is now.

What surely did not arrive is tried again for a while; what may have arrived never is.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from app.chats import Chats
from app.clock import utcnow
from app.telegram.errors import Busy, Refused, Unreachable
from app.telegram.pace import Pace, Urgency

log = logging.getLogger(__name__)

_LONGEST_PAUSE_SECONDS = 15.0
_LEAST_TRIES = 3
_MOVES_AT_MOST = 2

Sent = TypeVar("Sent")


class Stopped(Exception):  # noqa: N818 - no fault: surely nothing was sent
    """The process stops before anything was sent."""


class Outgoing:
    """Sends for every part of the bot; any thread may call."""

    def __init__(self, pace: Pace, chats: Chats, stopping: threading.Event) -> None:
        self.pace = pace
        self._chats = chats
        self._stopping = stopping

    def address(self, chat: int) -> int:
        """Where a chat is now."""
        return self._chats.address(chat)

    def send(
        self,
        chat: int,
        urgency: Urgency,
        act: Callable[[int], Sent],
        patience_seconds: float,
    ) -> Sent:
        """What act(chat) gives, once it is done; chat is where the group lives now.

        Waits whenever Telegram asks for it. When no answer comes and surely nothing arrived, it
        is tried again for so long, and three times at least. Raises Stopped, Refused, Unreachable.
        """
        pauses = _pauses(patience_seconds)
        target, moves = self._chats.address(chat), 0
        while True:
            if not self.pace.wait(target, urgency, self._stopping):
                raise Stopped
            try:
                return act(target)
            except Busy as busy:
                log.warning(
                    "Telegram asks to wait", extra={"pause_seconds": busy.retry_after_seconds}
                )
                self.pace.rest(busy.retry_after_seconds)
            except Refused as refusal:
                if refusal.migrate_to is None or moves == _MOVES_AT_MOST:
                    raise
                moves += 1
                self._chats.moved(target, refusal.migrate_to, utcnow())
                target = refusal.migrate_to
            except Unreachable as fault:
                pause = next(pauses, None)
                if fault.may_have_arrived or pause is None:
                    raise
                if self._stopping.wait(pause):
                    raise Stopped from None


def _pauses(patience_seconds: float) -> Iterator[float]:
    """The pauses between tries: 1, 2, 4 ... seconds, until patience is at its end."""
    end = time.monotonic() + patience_seconds
    tries, pause = 1, 1.0
    while tries < _LEAST_TRIES or time.monotonic() + pause < end:
        yield pause
        tries, pause = tries + 1, min(pause * 2, _LONGEST_PAUSE_SECONDS)
