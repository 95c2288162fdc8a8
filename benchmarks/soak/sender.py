"""A program that hands recordings in over HTTP and does not give up: it repeats with its key."""

import http.client
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.web.site import Site

_PAUSE_SECONDS = 0.05
_REPEATS = 2
"""Each so many-th hand-in is sent once more although it was answered, as a doubting sender does."""


class Sender(threading.Thread):
    """Hands in until stopped, but waits while `is_full` says so.

    accepted holds the ids that each key was answered with, unanswered counts the attempts that
    came to nothing, and refused the answers that were no acceptance.
    """

    def __init__(
        self,
        name: str,
        site: Site,
        recordings: Sequence[Path],
        is_full: Callable[[], bool],
        stopping: threading.Event,
    ) -> None:
        super().__init__(name=name)
        self._site = site
        self._recordings = recordings
        self._is_full = is_full
        self._stopping = stopping
        self.accepted: dict[str, set[str]] = {}
        self.unanswered = 0
        self.refused: list[str] = []

    def run(self) -> None:
        """Hand in one recording after another; one that was begun is brought to its answer."""
        number = 0
        while not self._stopping.is_set():
            if self._is_full():
                self._stopping.wait(_PAUSE_SECONDS)
                continue
            number += 1
            for _ in range(2 if number % _REPEATS == 0 else 1):
                self._hand_in(
                    f"{self.name}-{number}", self._recordings[number % len(self._recordings)]
                )

    def _hand_in(self, key: str, recording: Path) -> None:
        body = recording.read_bytes()
        while True:
            try:
                status, _, answer = self._site.ask(
                    "POST", f"/api/jobs?name={recording.name}", body, {"Idempotency-Key": key}
                )
            except (OSError, http.client.HTTPException):
                self.unanswered += 1
                # Not the event: what was begun is answered even when all is about to end.
                threading.Event().wait(_PAUSE_SECONDS)
                continue
            if status in (200, 201):
                self.accepted.setdefault(key, set()).add(json.loads(answer)["id"])
            else:
                self.refused.append(f"{key}: {status}")
            return
