"""Sending the replies that ended jobs owe: each once, each failure by its name (P22-P24, P47).

The messenger knows how to reach people; this knows what becomes of the row. A reply that cannot
be delivered changes nothing about its job.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from app import metrics
from app.queue.replies import Owed, Reason, Replies, Reply

log = logging.getLogger(__name__)

_LEVELS = {
    Reason.INTAKE_DOWN: logging.WARNING,
    Reason.NO_ADDRESSEE: logging.ERROR,
    Reason.REJECTED: logging.WARNING,
    Reason.UNREACHABLE: logging.WARNING,
}


class Undeliverable(Exception):  # noqa: N818 - a verdict of the messenger, not a fault
    """The messenger's verdict: this reply will not arrive, and why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class MayHaveArrived(Exception):  # noqa: N818 - as above
    """No answer came, and it may have arrived all the same: it is not to be sent again."""


class PutOff(Exception):  # noqa: N818 - as above
    """Surely nothing was sent, because this process stops: its successor goes on."""


class Messenger(Protocol):
    """A way to reach senders; holds to its own limits and retries within its own bounds."""

    def parts(self, owed: Owed) -> Sequence[str]:
        """The messages that a reply is made of, in order; the same for the same reply."""

    def send(self, owed: Owed, number: int, part: str) -> None:
        """Send one part, number counting from 0; raises Undeliverable, MayHaveArrived or PutOff.

        Anything else that it raises leaves the reply doubtful too.
        """


class Delivery:
    """Sends what is owed, one reply after another."""

    def __init__(self, replies: Replies, messenger: Messenger, now: Callable[[], datetime]) -> None:
        self._replies = replies
        self._messenger = messenger
        self._now = now
        self._unwritten: deque[Callable[[], object]] = deque()

    def turn(self) -> bool:
        """Send the oldest owed reply; False when nothing is owed.

        What the store does not take is written at the next turn, and nothing more is sent before.
        """
        self._write_up()
        owed = self._replies.take(self._now())
        if owed is None:
            return False
        reply = owed.reply
        try:
            self._send(owed)
        except Undeliverable as verdict:
            reason = verdict.reason
            record_undelivered(reply, reason)
            self._write(lambda: self._replies.undelivered(reply, reason, self._now()))
        except MayHaveArrived:
            record_undelivered(reply, Reason.UNREACHABLE)
            self._write(lambda: self._replies.doubtful(reply, self._now()))
        except PutOff:
            self._write(lambda: self._replies.put_back(reply, self._now()))
        except Exception:
            # Whether it arrived is not known, so it is not sent again. When this process ends
            # before the store takes even this, the row counts as doubtful all the same.
            log.exception("a reply is doubtful", extra={"job_id": owed.job.id})
            self._write(lambda: self._replies.doubtful(reply, self._now()))
        else:
            self._write(lambda: self._replies.sent(reply, self._now()))
        return True

    def _send(self, owed: Owed) -> None:
        if owed.job.tg_chat_id is None:
            raise Undeliverable(Reason.NO_ADDRESSEE)
        for number, part in enumerate(self._messenger.parts(owed)):
            if number >= owed.reply.parts_sent:
                self._messenger.send(owed, number, part)
                self._note_part(owed, number + 1)

    def _note_part(self, owed: Owed, parts_sent: int) -> None:
        try:
            self._write(lambda: self._replies.part_sent(owed.reply, parts_sent, self._now()))
        except Exception:
            # The part has arrived, and the rest is wanted no less; it is noted before what follows.
            log.exception("a sent part cannot be noted yet", extra={"job_id": owed.job.id})

    def _write(self, write: Callable[[], object]) -> None:
        self._unwritten.append(write)
        self._write_up()

    def _write_up(self) -> None:
        while self._unwritten:
            self._unwritten[0]()
            self._unwritten.popleft()


def record_undelivered(reply: Reply, reason: Reason) -> None:
    """Count and log a reply that was not delivered, without a word of it (P23)."""
    metrics.undelivered_replies.labels(reason.value).inc()
    log.log(
        _LEVELS[reason],
        "the reply was not delivered",
        extra={"job_id": reply.job, "reason": reason.value},
    )


def give_up(
    replies: Replies, *, is_gone: Callable[[str], bool], wait_seconds: float | None, now: datetime
) -> None:
    """Settle what no living process will send: doubtful, or undelivered after the wait.

    wait_seconds is None while a process that sends is alive: it may be slow, and is not down.
    """
    for reply in replies.doubt(is_gone, now):
        log.warning(
            "a reply is doubtful: its sender ended while sending it",
            extra={"job_id": reply.job, "parts_sent": reply.parts_sent},
        )
    if wait_seconds is not None:
        for reply in replies.expire(wait_seconds, now):
            record_undelivered(reply, Reason.INTAKE_DOWN)
