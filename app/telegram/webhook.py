"""The webhook: Telegram calls, and an update is confirmed by the answer 200.

A small server of the bot's own, on loopback behind the owner's proxy: the bot's process takes
what is sent, and the web's process need not know of Telegram.
"""

import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pydantic import SecretStr

from app.chats import Trouble
from app.telegram.fetch import StoppedError
from app.telegram.talk import HeldError, Talk

log = logging.getLogger(__name__)

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - its name, not its value
_LARGEST_BYTES = 4 * 1024**2
_SILENCE_SECONDS = 30.0


def secret_of(token: SecretStr) -> str:
    """What Telegram must show at each call: the same after every start, and no way to the token."""
    key = token.get_secret_value().encode()
    return hmac.new(key, b"pisar webhook", hashlib.sha256).hexdigest()


class Webhook:
    """Serves Telegram's calls; note() is told what keeps an update waiting."""

    def __init__(
        self, talk: Talk, secret: str, port: int, note: Callable[[Trouble, str], None]
    ) -> None:
        self._talk = talk
        self._secret = secret.encode()
        self._note = note
        # One after another, as they come by asking: a /cancel must not overtake its recording.
        self._turn = threading.Lock()
        self._server = _Server(("127.0.0.1", port), self._handler())

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Serve until the block is left."""
        thread = threading.Thread(target=self._server.serve_forever, name="webhook", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()

    def is_telegrams(self, shown: str) -> bool:
        """True for a call that shows the secret."""
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self._secret)

    def take(self, body: bytes) -> HTTPStatus:
        """Deal with one update; anything but 200 has Telegram bring it again."""
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            return HTTPStatus.BAD_REQUEST
        with self._turn:
            try:
                self._talk.deal([update], lambda number: None)
            except HeldError as held:
                self._note(held.trouble, held.reason)
                return HTTPStatus.SERVICE_UNAVAILABLE
            except StoppedError:
                return HTTPStatus.SERVICE_UNAVAILABLE
            except Exception:
                log.exception("an update could not be taken and will come again")
                self._note(Trouble.STUCK, "internal")
                return HTTPStatus.SERVICE_UNAVAILABLE
        return HTTPStatus.OK

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _SILENCE_SECONDS
            server_version, sys_version = "pisar", ""

            def do_POST(self) -> None:
                self._answer(self._take())

            def log_message(self, *_: object) -> None:
                """Say nothing: what came is in the log as jobs, and a stranger's path is not."""

            def _take(self) -> HTTPStatus:
                if not webhook.is_telegrams(self.headers.get(SECRET_HEADER, "")):
                    return HTTPStatus.FORBIDDEN
                length = self.headers.get("Content-Length", "")
                if not (length.isascii() and length.isdigit()):
                    return HTTPStatus.LENGTH_REQUIRED
                if int(length) > _LARGEST_BYTES:
                    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                return webhook.take(self.rfile.read(int(length)))

            def _answer(self, status: HTTPStatus) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.send_header("Connection", "close")
                self.end_headers()

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller who went away is no news; the library would print its whole story."""
        log.debug("a call of the webhook broke off", exc_info=True)
