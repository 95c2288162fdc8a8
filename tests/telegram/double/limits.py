"""How much a bot may send: what Telegram says of its limits, kept strictly when switched on.

Source: https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this
"""

import math
from collections import deque
from dataclasses import dataclass, field

from tests.telegram.double.clock import Clock
from tests.telegram.double.errors import too_many


@dataclass
class Limits:
    """Off until is_on; burst is how many messages a chat may take at once before its second."""

    clock: Clock
    is_on: bool = False
    per_chat_seconds: float = 1.0
    burst: int = 1
    group_per_minute: int = 20
    per_second: int = 30
    _sent: dict[int, deque[float]] = field(default_factory=dict)
    _all: deque[float] = field(default_factory=deque)

    def spend(self, chat_id: int, is_group: bool) -> None:
        """Count a message to a chat; 429 when it is one too many, and then it is not counted."""
        if not self.is_on:
            return
        now = self.clock.now()
        sent = self._sent.setdefault(chat_id, deque())
        waits = [
            _wait(sent, self.burst, self.per_chat_seconds * self.burst, now),
            _wait(self._all, self.per_second, 1.0, now),
        ]
        if is_group:
            waits.append(_wait(sent, self.group_per_minute, 60.0, now))
        if max(waits) > 0:
            raise too_many(math.ceil(max(waits)))
        sent.append(now)
        self._all.append(now)


def _wait(moments: deque[float], count: int, seconds: float, now: float) -> float:
    """Seconds until one more is within so many in so many seconds."""
    if len(moments) < count:
        return 0.0
    return moments[-count] + seconds - now
