"""The HTTP side: reads requests, does to them what faults order, writes answers."""

import json
import os
import re
import shutil
import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tests.telegram.double.errors import ApiError
from tests.telegram.double.faults import FILE, Fault
from tests.telegram.double.query import Query, read

if TYPE_CHECKING:
    from tests.telegram.double.telegram import Telegram

MOST_BYTES_TO_SEND = 50 * 1024**2
"""The largest upload that the public server takes; one of one's own takes 2000 MB."""

_MOST_BYTES_TO_LOCAL = 2000 * 1024**2
_METHOD = re.compile(r"/bot([^/]*)/(?:test/)?/?(.*)", re.DOTALL)
_FILE = re.compile(r"/file/bot([^/]*)/(.*)", re.DOTALL)
_RESET = struct.pack("ii", 1, 0)


class Server(ThreadingHTTPServer):
    """Listens on loopback; failures are mistakes of the double, not of a client."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, telegram: "Telegram", port: int) -> None:
        self.telegram = telegram
        self.failures: list[BaseException] = []
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)
        self.port: int = self.server_address[1]
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more, and cut what is open."""
        self.shutdown()
        self.server_close()
        self._thread.join()
        with self._lock:
            for line in self._sockets:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection; see socketserver."""
        with self._lock:
            self._sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection; see socketserver."""
        with self._lock:
            self._sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is none of ours; anything else is."""
        # The exception is the one being handled: socketserver calls from within its except.
        try:
            raise
        except OSError:
            pass
        except BaseException as failure:
            self.failures.append(failure)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "nginx/1.18.0"
    sys_version = ""
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_GET  # noqa: N815 - the base class's name

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        telegram = self.server.telegram
        most = _MOST_BYTES_TO_LOCAL if telegram.is_local else MOST_BYTES_TO_SEND
        body = self._body(most)
        path = unquote(urlsplit(self.path).path)
        file, method = _FILE.fullmatch(path), _METHOD.fullmatch(path)
        if body is None:
            self.close_connection = True
            self._say(ApiError(413, "Request Entity Too Large").body())
        elif file:
            self._serve_file(file[1], file[2])
        elif method:
            self._serve_method(method[1], method[2], body)
        else:
            self._say(ApiError(404, "Not Found").body())

    def _serve_method(self, token: str, name: str, body: bytes) -> None:
        telegram, query = self.server.telegram, Query(name.lower(), {})
        at = telegram.clock.now()
        refusal: Mapping[str, Any] | None = None
        try:
            media_type = self.headers.get("Content-Type", "")
            query = read(name, urlsplit(self.path).query, media_type, body)
        except ApiError as error:
            refusal = error.body()
        method = name or query.method
        fault = telegram.faults.take(method, query.arguments)
        if fault and fault.gate and not fault.after:
            fault.gate.pass_through()
            fault = None
        with telegram.network.lock:
            answer = refusal
            if fault and not fault.after:
                answer = fault.error.body() if fault.error else None
            elif answer is None:
                answer = telegram.answer(token, query)
            telegram.journal.add(
                at,
                method,
                arguments=query.arguments,
                attachments=query.attachments,
                answer=answer,
                fault=fault.name if fault else None,
            )
        self._reply(answer, fault)

    def _serve_file(self, token: str, path: str) -> None:
        telegram = self.server.telegram
        fault = telegram.faults.take(FILE, {"path": path})
        if fault and fault.gate:
            fault.gate.pass_through()
            fault = None
        with telegram.network.lock:
            answer: Mapping[str, Any] = {"ok": True}
            found = None
            try:
                telegram.check_token(token)
                if not telegram.serves_files:
                    raise ApiError(404, "Not Found")
                found = telegram.network.files.fetch(path.lstrip("/"))
            except ApiError as error:
                answer = error.body()
            telegram.journal.add(
                telegram.clock.now(),
                FILE,
                arguments={"path": path},
                attachments={},
                answer=answer,
                fault=fault.name if fault else None,
            )
        if found is None or (fault and not fault.after):
            self._reply(answer, fault)
        elif fault:
            self._disturb(fault, found.data(), "application/octet-stream")
        else:
            self._begin(200, "application/octet-stream", found.stored_bytes())
            with (
                BytesIO(found.source)
                if isinstance(found.source, bytes)
                else found.source.open("rb") as source
            ):
                shutil.copyfileobj(source, self.wfile)

    def _reply(self, answer: Mapping[str, Any] | None, fault: Fault | None) -> None:
        if fault is None or (fault.error and not fault.after):
            self._say(answer or {})
        elif fault.gate:
            fault.gate.pass_through()
            self._say(answer or {})
        elif fault.error:
            self._say(fault.error.body())
        else:
            self._disturb(fault, json.dumps(answer).encode(), "application/json")

    def _disturb(self, fault: Fault, whole: bytes, media_type: str) -> None:
        faults = self.server.telegram.faults
        self.close_connection = True
        if fault.is_silent:
            faults.keep_silent()
        elif fault.is_reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            # The reader holds the socket open, so closing it is not enough.
            os.close(self.connection.detach())
        elif fault.body is not None:
            self._send(fault.status, fault.media_type, fault.body)
        elif fault.cut is not None:
            self._begin(200, media_type, len(whole))
            self.wfile.write(whole[: fault.cut])
        elif fault.drip is not None:
            self._begin(200, media_type, len(whole))
            for number in range(len(whole)):
                self.wfile.write(whole[number : number + 1])
                if faults.is_released(fault.drip):
                    return

    def _say(self, answer: Mapping[str, Any]) -> None:
        headers = {}
        if "retry_after" in answer.get("parameters", {}):
            headers["Retry-After"] = str(answer["parameters"]["retry_after"])
        status = int(answer.get("error_code", 200))
        self._send(status, "application/json", json.dumps(answer).encode(), headers)

    def _send(
        self, status: int, media_type: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self._begin(status, media_type, len(body), headers)
        self.wfile.write(body)

    def _begin(
        self, status: int, media_type: str, size: int, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": media_type, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(size))
        self.end_headers()

    def _body(self, most: int) -> bytes | None:
        """What came with the request; None when it is too much."""
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return self._chunks(most)
        size = int(self.headers.get("Content-Length") or 0)
        return None if size > most else self.rfile.read(size)

    def _chunks(self, most: int) -> bytes | None:
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0] or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
            if len(body) > most:
                return None
        self.rfile.readline()
        return body
