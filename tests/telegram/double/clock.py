"""The double's time: the real one, moved on by what a test passes in."""

import threading
import time


class Clock:
    """Seconds since 1970; it runs by itself, and a test may let more of it pass at once."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._lock = threading.Lock()

    def now(self) -> float:
        """The moment in seconds."""
        with self._lock:
            return time.time() + self._ahead

    def passes(self, seconds: float = 0, *, hours: float = 0) -> None:
        """Move the moment on; nobody who waits is woken by it."""
        with self._lock:
            self._ahead += seconds + hours * 3600
