"""When the bot may say something: Telegram's limits, kept in one place for all its threads.

Telegram asks for at most 30 messages a second over all, one a second in a chat, 20 a minute in a
group, and allows short bursts (core.telegram.org/bots/faq, "My bot is hitting limits").
Whoever goes beyond is told to wait, and then everybody waits.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

LONGEST_REST_SECONDS = 3600.0
"""After a longer wait it does no harm to ask again whether it is over."""

_TICK_SECONDS = 0.2
_CHATS_KEPT = 1000


@dataclass(frozen=True)
class _Limit:
    """So many at once, and then one in each interval."""

    interval_seconds: float
    burst: int


_OVERALL = _Limit(1 / 25, 25)
_PRIVATE = _Limit(1.0, 10)
_GROUP = _Limit(3.0, 10)


class Urgency(IntEnum):
    """Who goes first; a change of a message goes after all of these, or not at all."""

    REPLY = 0
    WORD = 1


class Pace:
    """The turns of all that is sent; clock gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._rest_until = float("-inf")
        # The moment at which each would be fully rested ("theoretical arrival time").
        self._overall = float("-inf")
        self._chats: dict[int, float] = {}
        self._waiting: list[tuple[int, int, int]] = []
        self._tickets = 0

    def wait(self, chat: int, urgency: Urgency, stopping: threading.Event) -> bool:
        """Wait until a message may go to a chat, and count it; False when told to stop first."""
        with self._changed:
            self._tickets += 1
            place = (int(urgency), self._tickets, chat)
            self._waiting.append(place)
            try:
                while not stopping.is_set():
                    seconds = self._seconds(chat)
                    if seconds <= 0 and self._is_first(place):
                        self._count(chat)
                        return True
                    # Never long: the event that stops us does not wake this one.
                    self._changed.wait(min(max(seconds, 0.01), _TICK_SECONDS))
                return False
            finally:
                self._waiting.remove(place)
                self._changed.notify_all()

    def may_change(self, chat: int) -> bool:
        """True, and counted, when a message may be changed without keeping anybody waiting.

        Half of a burst stays free for what is new.
        """
        with self._changed:
            if self._waiting or self._seconds(chat, spare=0.5) > 0:
                return False
            self._count(chat)
            return True

    def rest(self, seconds: float) -> None:
        """Nobody says anything for so long: Telegram asked for it."""
        with self._changed:
            until = self._clock() + min(max(seconds, 0.0), LONGEST_REST_SECONDS)
            self._rest_until = max(self._rest_until, until)

    def _is_first(self, place: tuple[int, int, int]) -> bool:
        return not any(other < place and self._seconds(other[2]) <= 0 for other in self._waiting)

    def _seconds(self, chat: int, spare: float = 0.0) -> float:
        """How long a chat must wait; spare is the part of a burst that is not to be touched."""
        now = self._clock()
        moments = [
            self._rest_until,
            _opens(self._overall, _OVERALL, spare),
            _opens(self._chats.get(chat, float("-inf")), _limit(chat), spare),
        ]
        return max(moments) - now

    def _count(self, chat: int) -> None:
        now = self._clock()
        self._overall = max(self._overall, now) + _OVERALL.interval_seconds
        if len(self._chats) >= _CHATS_KEPT:
            self._chats = {known: rested for known, rested in self._chats.items() if rested > now}
        before = self._chats.get(chat, float("-inf"))
        self._chats[chat] = max(before, now) + _limit(chat).interval_seconds


def _limit(chat: int) -> _Limit:
    # Groups and channels have negative numbers.
    return _GROUP if chat < 0 else _PRIVATE


def _opens(rested: float, limit: _Limit, spare: float) -> float:
    return rested - limit.interval_seconds * (limit.burst * (1 - spare) - 1)
