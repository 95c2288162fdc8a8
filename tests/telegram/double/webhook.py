"""Brings updates to the bot's address, in order within a chat, until each is taken.

Source: the original's WebhookActor. A failed update is tried again at once, then after pauses
that double; others of the same chat wait behind it, those of other chats do not.
"""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.telegram.double.clock import Clock
from tests.telegram.double.updates import Update, Updates

_MOST_PAUSE = 64
_MOST_RETRY_AFTER = 3600
_TIMEOUT_SECONDS = 10.0
_MOST_WORKERS = 8
# What a webhook may not ask for in its answer.
_NOT_IN_AN_ANSWER = ("deletewebhook", "setwebhook", "close", "logout")


@dataclass
class _Trouble:
    """How an update fared so far; pause is in units of the webhook's pause."""

    count: int = 0
    pause: int = 1
    next_at: float = 0.0


@dataclass
class Delivery:
    """One try to bring an update: status is what was answered, 0 when nothing was."""

    update_id: int
    status: int


@dataclass
class Webhook:
    """Where updates go; pause_seconds is the unit of its pauses, 1 in the original."""

    url: str
    secret: str
    max_connections: int
    answer: Callable[[Mapping[str, Any]], None]
    clock: Clock
    lock: threading.RLock
    updates: Updates
    pause_seconds: float
    deliveries: list[Delivery] = field(default_factory=list)
    last_error: str = ""
    last_error_at: int = 0
    _troubles: dict[int, _Trouble] = field(default_factory=dict)
    _under_way: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._is_closed = threading.Event()
        self._wake = threading.Event()
        self._pool = ThreadPoolExecutor(min(self.max_connections, _MOST_WORKERS))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to bring what waits."""
        self._thread.start()

    def wake(self) -> None:
        """There is something new."""
        self._wake.set()

    def close(self) -> None:
        """Bring no more; what is under way ends by itself. Called under the lock."""
        self._is_closed.set()
        self._wake.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Wait for what is under way; called without the lock."""
        self._thread.join()
        self._pool.shutdown(wait=True)

    def repeat(self, update: Update) -> None:
        """Bring an update once more, as after an answer that got lost on its way."""
        self._pool.submit(self._post, update).result()

    def _run(self) -> None:
        while not self._is_closed.is_set():
            self._wake.clear()
            self._wake.wait(self._bring_what_is_due())

    def _bring_what_is_due(self) -> float | None:
        """Begin all that is due; gives the seconds until the next is."""
        now, waits = time.monotonic(), []
        with self.lock:
            queues: set[int] = set()
            for update in [] if self._is_closed.is_set() else self.updates.pending():
                if update.queue in queues:
                    continue
                queues.add(update.queue)
                if update.queue in self._under_way:
                    continue
                next_at = self._troubles.get(update.id, _Trouble()).next_at
                if next_at > now:
                    waits.append(next_at - now)
                    continue
                self._under_way.add(update.queue)
                self._pool.submit(self._bring, update)
        return min(waits, default=None)

    def _bring(self, update: Update) -> None:
        status, retry_after = self._post(update)
        with self.lock:
            self._under_way.discard(update.queue)
            if 200 <= status <= 299:
                self.updates.forget(update)
                self._troubles.pop(update.id, None)
            else:
                self._put_off(update, retry_after)
        self.wake()

    def _put_off(self, update: Update, retry_after: int) -> None:
        trouble = self._troubles.setdefault(update.id, _Trouble())
        pause = min(retry_after, _MOST_RETRY_AFTER)
        if not pause and trouble.count:
            pause = trouble.pause = min(trouble.pause * 2, _MOST_PAUSE)
        if self.clock.now() + pause > update.expires_at:
            self.updates.forget(update)
        trouble.count += 1
        trouble.next_at = time.monotonic() + pause * self.pause_seconds

    def _post(self, update: Update) -> tuple[int, int]:
        """Send it; gives the status, 0 for none, and the seconds of Retry-After."""
        status, retry_after, said = 0, 0, b""
        try:
            status, retry_after, said = self._exchange(json.dumps(update.json()).encode())
        except (OSError, http.client.HTTPException) as fault:
            self._note(f"Connection failed: {type(fault).__name__}")
        if status and not 200 <= status <= 299:
            reason = http.client.responses.get(status, "")
            self._note(f"Wrong response from the webhook: {status} {reason}")
        self.deliveries.append(Delivery(update.id, status))
        if 200 <= status <= 299:
            self._carry_out(said)
        return status, retry_after

    def _exchange(self, body: bytes) -> tuple[int, int, bytes]:
        url = urlsplit(self.url)
        host, port = url.hostname or "", url.port
        connection = (
            http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)
            if url.scheme == "http"
            else http.client.HTTPSConnection(
                host, port, timeout=_TIMEOUT_SECONDS, context=_any_certificate()
            )
        )
        headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}
        if self.secret:
            headers["X-Telegram-Bot-Api-Secret-Token"] = self.secret
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            pause = response.headers.get("Retry-After", "")
            return response.status, int(pause) if pause.isdigit() else 0, response.read()
        finally:
            connection.close()

    def _note(self, error: str) -> None:
        self.last_error, self.last_error_at = error, int(self.clock.now())

    def _carry_out(self, said: bytes) -> None:
        """A webhook may ask for a method in its answer; nobody hears what became of it."""
        try:
            asked = json.loads(said)
        except ValueError:
            return
        method = str(asked.get("method", "")).lower() if isinstance(asked, dict) else ""
        if method and method not in _NOT_IN_AN_ANSWER and not method.startswith("get"):
            self.answer(asked)


def _any_certificate() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
