"""A claim in the hands of a running step: its progress, its pieces, and whether it still holds."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime

from app.job import Piece
from app.queue.port import Claim, Queue
from worker.work import Stopped

log = logging.getLogger(__name__)

_WRITE_SECONDS = 1.0
"""Progress is written at most once in this time (P43)."""

_LOOK_SECONDS = 0.5
"""How old the knowledge may be that the claim holds: a cancelled step ends within a second."""


class Hold:
    """Writes what a step reports, and notices that the claim was lost or the worker stops.

    now gives the present moment; stopping is set when running steps must end. rings counts how
    often something changed in the queue: then the claim is looked at without delay.
    """

    def __init__(
        self,
        queue: Queue,
        claim: Claim,
        stopping: threading.Event,
        now: Callable[[], datetime],
        rings: Callable[[], int] = lambda: 0,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue = queue
        self._claim = claim
        self._stopping = stopping
        self._now = now
        self._rings = rings
        self._heard = rings()
        self._tick = tick
        self._written_at = float("-inf")
        self._looked_at = tick()
        self.is_lost = False

    def report(self, progress: float) -> None:
        """Write progress (0-1) and renew the lease, at most once a second."""
        moment = self._tick()
        if self.is_lost or moment - self._written_at < _WRITE_SECONDS:
            return
        self._written_at = self._looked_at = moment
        try:
            held = self._queue.report(self._claim, min(max(progress, 0), 1), self._now())
        except Exception:
            # A line of progress is not worth an attempt: the result will be tried until it stands.
            log.exception("progress cannot be written", extra={"job_id": self._claim.job.id})
        else:
            self.is_lost = not held

    def keep(self, piece: Piece, progress: float) -> None:
        """Store a finished piece; Stopped when the claim is lost."""
        if not self.is_lost:
            self._written_at = self._looked_at = self._tick()
            self.is_lost = not self._queue.save_piece(
                self._claim, piece, min(max(progress, 0), 1), self._now()
            )
        if self.is_lost:
            raise Stopped

    def intend(self, intent: str) -> None:
        """Store the name of an operation that is about to be begun; Stopped when it is lost."""
        self.is_lost = self.is_lost or not self._queue.intend(self._claim, intent, self._now())
        if self.is_lost:
            raise Stopped

    def stopped(self) -> bool:
        """True when the step must end: the worker stops, or the claim is no longer its own."""
        rings = self._rings()
        if not self.is_lost and (
            rings != self._heard or self._tick() - self._looked_at >= _LOOK_SECONDS
        ):
            self._heard, self._looked_at = rings, self._tick()
            try:
                job = self._queue.find(self._claim.job.id)
            except Exception:
                log.exception("the claim cannot be seen", extra={"job_id": self._claim.job.id})
            else:
                self.is_lost = job is None or job.acquisition_id != self._claim.acquisition_id
        return self.is_lost or self._stopping.is_set()
