"""Waitress, taught to refuse a body early and to let the refusal be read.

Four things it does not do by itself: limit bodies by address, refuse before the body without
inviting it (`100 Continue`), close a connection that is still being sent to without a reset
that would tear the answer away from its reader, and word its own errors as ours are worded.
"""

import copy
import errno
import logging
import socket
import time
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask, WSGITask
from waitress.utilities import RequestEntityTooLarge

from app.errors import AppError
from app.web.errors import PROBLEM, problem
from app.web.gate import SMALL_BODY_BYTES, Gate
from app.web.guard import HEADERS, REFUSAL

LINGER_SECONDS = 30.0
"""How long a refused body is still received and dropped, so that its sender reads the answer."""

LINGER_SILENCE_SECONDS = 5.0

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Parser(HTTPRequestParser):  # type: ignore[misc]  # waitress ships no types
    """Decides at the end of the headers; the app words the refusal like every other error."""

    adj: Any
    refusal: str | None = None

    def received(self, data: bytes) -> int:
        """Take in bytes of a request; gives how many belonged to it."""
        try:
            consumed = super().received(data)
        except OSError as error:
            self._refuse("disk_full" if error.errno in _FULL else "storage_failed")
        if isinstance(self.error, RequestEntityTooLarge):
            self._refuse("too_large")
        # The rest of a refused body is not a next request.
        return len(data) if self.refusal else int(consumed)

    def parse_header(self, header_plus: bytes) -> None:
        """Read the headers and judge them."""
        super().parse_header(header_plus)
        gate: Gate = self.adj.gate
        is_intake = gate.is_intake(self.command, self.path)
        if not is_intake:
            self.adj = self.adj.small
        if self.body_rcv is None:
            return
        if self.content_length >= self.adj.max_request_body_size:
            self._refuse("too_large")
        elif is_intake and (code := gate.refuses_sender(self.path, self.headers)):
            self._refuse(code)

    def _refuse(self, code: str) -> None:
        """Turn this into a request without a body, and the last one of its connection."""
        self.close()
        self.refusal = code
        self.error = self.body_rcv = None
        self.chunked = self.expect_continue = False
        self.content_length = 0
        self.completed = True
        self.headers.pop("CONTENT_LENGTH", None)
        self.headers["CONNECTION"] = "close"


class Task(WSGITask):  # type: ignore[misc]
    """Passes a refusal on to the app."""

    def get_environment(self) -> dict[str, Any]:
        """The WSGI environment of the request."""
        environ: dict[str, Any] = super().get_environment()
        if self.request.refusal:
            environ[REFUSAL] = self.request.refusal
        return environ


class Broken(ErrorTask):  # type: ignore[misc]
    """Answers what is not HTTP, which never reaches the app: our form, our headers (I05).

    In English always: of a request that cannot be read, no wish for a language can be.
    """

    def execute(self) -> None:
        """Write the answer and end the connection."""
        fault = self.request.error
        error = AppError("bad_request" if fault.code < 500 or fault.code == 501 else "internal")
        body = problem(error.code, fault.code, error.message).encode()
        self.status = f"{fault.code} {fault.reason}"
        self.response_headers.extend({**HEADERS, "Content-Type": PROBLEM}.items())
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _WithoutPaths(logging.Filter):
    """A path may hold a stored name, and waitress puts it at the end of two messages (S10)."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = str(record.msg).partition(" while serving ")[0]
        return True


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection that lingers after a refusal: it says its answer, then listens to the rest."""

    parser_class = Parser
    task_class = Task
    error_task_class = Broken
    logger = logging.getLogger(f"{__name__}.http")

    will_close: bool
    is_refused = False
    _linger_until: float | None = None
    _heard_at = 0.0

    def service(self) -> None:
        """Answer one request."""
        self.is_refused = bool(self.requests[0].error or self.requests[0].refusal)
        super().service()

    def handle_write(self) -> None:
        """Send what is to be sent; a refused connection is then only half closed."""
        if self.is_refused and self.close_when_flushed and self.connected:
            self._flush_exception(self._flush_some)
            if not self.total_outbufs_len and not self.will_close:
                self._linger()
                return
        super().handle_write()

    def readable(self) -> bool:
        """True when the connection is to be read from."""
        if self._linger_until is None or self.will_close:
            return bool(super().readable())
        now = time.monotonic()
        if now > self._linger_until or now > self._heard_at + LINGER_SILENCE_SECONDS:
            self.will_close = True
        return not self.will_close

    def handle_read(self) -> None:
        """Read; while lingering, what is read is dropped."""
        if self._linger_until is None:
            super().handle_read()
            return
        try:
            if self.recv(self.adj.recv_bytes):
                self._heard_at = time.monotonic()
        except OSError:
            self.handle_close()

    def handle_close(self) -> None:
        """Close; a body that was only half received gives its disk space back at once.

        Left to the garbage collector, its file goes at some later time, and with a warning.
        """
        super().handle_close()
        if self.request is not None:
            self.request.close()

    def _linger(self) -> None:
        self.close_when_flushed = False
        self._heard_at = time.monotonic()
        self._linger_until = self._heard_at + LINGER_SECONDS
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.will_close = True


Channel.logger.addFilter(_WithoutPaths())


def teach(server: TcpWSGIServer, gate: Gate) -> None:
    """Have a server use these channels, with the gate's limits."""
    large: Adjustments = server.adj
    # Waitress refuses a body that reaches the limit, ours is the largest that passes.
    large.max_request_body_size = gate.largest_body_bytes + 1
    small = copy.copy(large)
    small.max_request_body_size = SMALL_BODY_BYTES + 1
    large.gate = small.gate = gate
    large.small = small.small = small
    server.channel_class = Channel
