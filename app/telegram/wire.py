"""How requests go to Telegram: bounded in time and size, and nothing of the token comes back.

The library puts the token into every address, its parameters too, and `requests` repeats the
address in every exception. So each exception ends here, outside of any `except` block, where no
chain leads back to it (P29).
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, socket
from typing import Any
from weakref import WeakSet

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from app.telegram.errors import Busy, Refused, TelegramError, Unreachable

POLL = "getUpdates"
_CHUNK_BYTES = 256 * 1024
# A hundred updates, each with the longest text there is, are below 2 MB.
_ANSWER_BYTES = 16 * 1024**2
# A kept connection may have been dropped on the way without a word to us. What is lost on it is
# a doubtful reply, so an old one is not used again.
_IDLE_SECONDS = 10.0
_DESCRIPTION_LENGTH = 200
_BUSY_SECONDS = 5.0
_OK = 200
_FIRST_REDIRECT = 300
_TOO_MANY = 429
_GATEWAY_TIMEOUT = 504
_SERVER_FAULTS = 500


class Answer:
    """An answer that Telegram gave and that is well: the one form that the library gets to see."""

    status_code = _OK
    reason = "OK"
    # The library would log it; what is said to people is in no log.
    text = ""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._said = said

    def json(self) -> Mapping[str, Any]:
        """The answer as Telegram gave it, with `ok` true."""
        return self._said


class Wire:
    """The connections of one bot: one to each thread that asks."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._lines = threading.local()
        self._polling: WeakSet[_Line] = WeakSet()
        self._is_closed = threading.Event()

    def send(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None,
        files: Mapping[str, Any] | None,
        timeout: tuple[float, float],
        **_: object,
    ) -> Answer:
        """The library's request sender; parameters go into the body. Raises TelegramError."""
        is_poll = url.endswith(POLL)
        line = self._line()
        if is_poll:
            self._polling.add(line)
            if self._is_closed.is_set():
                raise Unreachable("the bot stops", may_have_arrived=False)
        status, body = 0, b""
        with line.asking(sum(timeout)) as fault:
            response = line.session.post(
                url, data=params, files=files, timeout=timeout, stream=True, allow_redirects=False
            )
            status, body = response.status_code, _read(response)
        if fault:
            raise fault[0]
        return _verdict(status, body, self._token)

    def fetch(self, url: str, timeout: tuple[float, float], seconds: float) -> Iterator[bytes]:
        """The pieces of a file; seconds bound the whole of it. Raises TelegramError."""
        line = self._line()
        with line.asking(seconds) as fault:
            response = line.session.get(url, timeout=timeout, stream=True, allow_redirects=False)
            with response:
                if response.status_code == _OK:
                    yield from response.iter_content(_CHUNK_BYTES)
                    return
                status, body = response.status_code, _read(response)
        if fault:
            raise fault[0]
        _verdict(status, body, self._token)
        raise Unreachable("no file came", may_have_arrived=False)

    def hang_up(self) -> None:
        """End a running wait for updates, and every later one, by Unreachable; sending goes on."""
        self._is_closed.set()
        for line in list(self._polling):
            line.cut()

    def _line(self) -> "_Line":
        line: _Line | None = getattr(self._lines, "line", None)
        if line is None or line.is_old():
            if line is not None:
                line.close()
            line = self._lines.line = _Line()
        return line


class _Line:
    """A session that knows its sockets, so that another thread can cut them."""

    def __init__(self) -> None:
        self.session = requests.Session()
        # Proxies of the environment stay; a foreign .netrc could send its password along.
        self.session.auth = lambda request: request
        self._sockets: WeakSet[socket] = WeakSet()
        self._is_connected = False
        self._used_at = time.monotonic()
        self._is_broken = False
        adapter = _Adapter(self)
        self.session.mount("http://", adapter)
        self.session.mount("https://", adapter)

    def is_old(self) -> bool:
        """True when a fresh one is to be preferred."""
        return self._is_broken or time.monotonic() - self._used_at > _IDLE_SECONDS

    @contextmanager
    def asking(self, seconds: float) -> Iterator[list[Unreachable]]:
        """Cut the line after so many seconds; what went wrong is in the list afterwards.

        The sockets' own timeout bounds each silence; this one bounds an answer that drips.
        """
        fault: list[Unreachable] = []
        alarm = threading.Timer(seconds, self.cut)
        alarm.daemon = True
        alarm.start()
        try:
            yield fault
        except Exception as error:
            # All of them: any may hold the address, and with it the token.
            self._is_broken = True
            fault.append(Unreachable(type(error).__name__, may_have_arrived=self._is_connected))
        except BaseException:
            # The answer was not read to its end, so the next question needs another line.
            self._is_broken = True
            raise
        finally:
            alarm.cancel()
            self._used_at = time.monotonic()

    def connecting(self) -> None:
        """A connection is being made; until then nothing can arrive."""
        self._is_connected = False

    def connected(self, made: socket) -> None:
        """A connection was made."""
        self._is_connected = True
        self._sockets.add(made)

    def cut(self) -> None:
        """End whatever waits on this line; for other threads."""
        for made in list(self._sockets):
            with suppress(OSError, ValueError):
                made.shutdown(SHUT_RDWR)

    def close(self) -> None:
        """Give the connections back."""
        self.session.close()


class _Adapter(HTTPAdapter):
    """Tells its line of each connection that is made."""

    def __init__(self, line: _Line) -> None:
        self._pools = _pools(line)
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = self._pools
        return manager


def _pools(line: _Line) -> dict[str, type]:
    class Plain(HTTPConnection):
        def connect(self) -> None:
            line.connecting()
            super().connect()
            _note(line, self.sock)

    class Secure(HTTPSConnection):
        def connect(self) -> None:
            line.connecting()
            super().connect()
            _note(line, self.sock)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def _note(line: _Line, made: socket | None) -> None:
    if made is not None:
        line.connected(made)


def _read(response: requests.Response) -> bytes:
    body = bytearray()
    with response:
        for chunk in response.iter_content(_CHUNK_BYTES):
            body += chunk
            if len(body) > _ANSWER_BYTES:
                raise ValueError("an answer without end")
    return bytes(body)


def _verdict(status: int, body: bytes, token: str) -> Answer:
    said = _object(body)
    if said is None:
        raise _not_telegram(status)
    if said["ok"] is True and "result" in said:
        return Answer(said)
    raise _refusal(said, status, token)


def _object(body: bytes) -> Mapping[str, Any] | None:
    """What the body says when it has Telegram's form, else None."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    is_telegrams = isinstance(said, dict) and isinstance(said.get("ok"), bool)
    return said if is_telegrams else None


def _not_telegram(status: int) -> Unreachable:
    """Something on the way spoke, with this HTTP status."""
    # A gateway that has waited in vain, or an answer that was garbled on its way back: it may be
    # done. Whoever else says no has said that it was not.
    is_open = status < _FIRST_REDIRECT or status == _GATEWAY_TIMEOUT
    return Unreachable(f"HTTP {status} without Telegram's form", may_have_arrived=is_open)


def _refusal(said: Mapping[str, Any], status: int, token: str) -> TelegramError:
    code = _number(said.get("error_code")) or status
    raw = said.get("parameters")
    parameters = raw if isinstance(raw, dict) else {}
    if said["ok"] is True:
        return Unreachable("an answer without a result", may_have_arrived=True)
    if code == _TOO_MANY:
        return Busy(float(_number(parameters.get("retry_after")) or _BUSY_SECONDS))
    if code >= _SERVER_FAULTS:
        return Unreachable(f"its error {code}", may_have_arrived=code == _GATEWAY_TIMEOUT)
    words = str(said.get("description", "")).replace(token, "[token]")[:_DESCRIPTION_LENGTH]
    return Refused(code, words, _number(parameters.get("migrate_to_chat_id")))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
