"""The queue of updates: numbered, kept for a day, handed out again until they are confirmed.

Source: the original's Client::do_get_updates and td's TQueue.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.telegram.double.clock import Clock
from tests.telegram.double.errors import ApiError, conflict
from tests.telegram.double.query import Query

DAY_SECONDS = 86400.0
LONGEST_POLL_SECONDS = 50
# Of these the original tells only who asks for them by name.
_RARE = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
_KINDS = frozenset(
    (
        "message",
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "inline_query",
        "chosen_inline_result",
        "callback_query",
        "my_chat_member",
        "chat_member",
        "message_reaction",
        "message_reaction_count",
        "poll",
        "poll_answer",
        "chat_join_request",
    )
)
# An offset this far beyond the queue's end is taken for another queue's, and for no offset.
_FUTURE = 10
_OTHER_POLLER = (
    "terminated by other getUpdates request; make sure that only one bot instance is running"
)
_HASTY_SECONDS = 3.0
_VERY_HASTY_SECONDS = 0.5


@dataclass(frozen=True)
class Update:
    """Something that happened; queue keeps the order within a webhook's deliveries."""

    id: int
    kind: str
    body: Mapping[str, Any]
    queue: int
    expires_at: float

    def json(self) -> dict[str, Any]:
        """As the bot gets it; a kind that is empty is a body of a stranger's making."""
        return {"update_id": self.id, **({self.kind: self.body} if self.kind else self.body)}


class Updates:
    """What the bot has not confirmed yet; every method is called under the double's lock.

    slows_hasty: a poll that repeats the last one at once is made to wait, and a conflict that
    follows another waits 3 s, as the original does against clients that spin.
    """

    def __init__(self, clock: Clock, lock: threading.RLock, slows_hasty: bool) -> None:
        self._clock = clock
        self._changed = threading.Condition(lock)
        self._slows_hasty = slows_hasty
        self._waiting: list[Update] = []
        self._next_id = 714_000_001
        self._allowed = _KINDS - _RARE
        self._poller = 0
        self._last_poll = (0, 0.0)
        self._next_conflict_at = 0.0
        self.is_closed = False
        self.has_webhook = False
        self.on_push: Callable[[], None] = lambda: None

    def push(
        self, kind: str, body: Mapping[str, Any], queue: int, seconds: float = DAY_SECONDS
    ) -> Update | None:
        """Add an update; None when the bot did not ask for its kind."""
        if kind and kind not in self._allowed:
            return None
        # What the bot gets is how things were then, whatever becomes of them.
        frozen = json.loads(json.dumps(body))
        update = Update(self._next_id, kind, frozen, queue, self._clock.now() + seconds)
        self._next_id += 1
        self._waiting.append(update)
        self._changed.notify_all()
        self.on_push()
        return update

    def pending(self) -> Sequence[Update]:
        """What is not confirmed, the oldest first."""
        now = self._clock.now()
        self._waiting = [update for update in self._waiting if update.expires_at > now]
        return list(self._waiting)

    def forget(self, update: Update) -> None:
        """A webhook took it, or will never."""
        self._waiting = [other for other in self._waiting if other.id != update.id]

    def clear(self, keep: int = 0) -> None:
        """Drop all but so many of the newest."""
        self._waiting = self._waiting[-keep:] if keep else []

    def renumber(self, next_id: int) -> None:
        """Go on counting from there, as Telegram may after a week without updates."""
        self._next_id = next_id

    def allow(self, query: Query) -> None:
        """Take over allowed_updates; what is no list of texts changes nothing."""
        try:
            wanted = json.loads(query.text("allowed_updates") or "null")
        except ValueError:
            return
        if isinstance(wanted, list) and all(isinstance(kind, str) for kind in wanted):
            self._allowed = frozenset(wanted) & _KINDS or _KINDS - _RARE

    @property
    def allowed(self) -> Sequence[str] | None:
        """What the bot asked for, None for the usual."""
        return None if self._allowed == _KINDS - _RARE else sorted(self._allowed)

    def interrupt(self, reason: str) -> None:
        """End a waiting poll with a conflict."""
        self._poller += 1
        self._interruption = reason
        self._changed.notify_all()

    def close(self) -> None:
        """End a waiting poll with nothing: the double closes or goes down."""
        self.is_closed = True
        self._changed.notify_all()

    def poll(self, query: Query) -> Sequence[Mapping[str, Any]]:
        """The answer of getUpdates; waits as asked, and lets go of the lock meanwhile."""
        if self.has_webhook:
            raise self._conflict(
                "can't use getUpdates method while webhook is active;"
                " use deleteWebhook to delete the webhook first"
            )
        offset, limit, seconds = self._slowed(query)
        self.allow(query)
        found = self._from(offset)[:limit]
        if found or not seconds:
            return [update.json() for update in found]
        self.interrupt(_OTHER_POLLER)
        mine, ends_at = self._poller, time.monotonic() + seconds
        while not found and not self.is_closed and time.monotonic() < ends_at:
            self._changed.wait(ends_at - time.monotonic())
            if self._poller != mine:
                raise self._conflict(self._interruption)
            found = self._from(offset)[:limit]
        return [update.json() for update in found]

    def _from(self, offset: int) -> Sequence[Update]:
        """What stands from an offset on; what is before it is confirmed and goes."""
        if offset < 0:
            self.clear(keep=-offset)
        elif 0 < offset <= self._next_id + _FUTURE:
            self._waiting = [update for update in self._waiting if update.id >= offset]
        return self.pending()

    def _slowed(self, query: Query) -> tuple[int, int, int]:
        offset = query.number("offset")
        limit = query.within("limit", 100, 1, 100)
        seconds = query.within("timeout", 0, 0, LONGEST_POLL_SECONDS)
        now = time.monotonic()
        last_offset, last_at = self._last_poll
        if self._slows_hasty and offset == last_offset:
            if seconds < _HASTY_SECONDS and now < last_at + _HASTY_SECONDS:
                seconds = int(_HASTY_SECONDS)
            if now < last_at + _VERY_HASTY_SECONDS:
                limit = 1
        self._last_poll = (offset, now)
        return offset, limit, seconds

    def _conflict(self, reason: str) -> ApiError:
        now = time.monotonic()
        if now >= self._next_conflict_at or not self._slows_hasty:
            self._next_conflict_at = now + _HASTY_SECONDS
        else:
            ends_at = now + _HASTY_SECONDS
            while not self.is_closed and time.monotonic() < ends_at:
                self._changed.wait(ends_at - time.monotonic())
        return conflict(reason)
