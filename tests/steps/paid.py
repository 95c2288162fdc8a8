"""A recognizer elsewhere that is paid for each operation, and its client."""

import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from app.job import Segment, Transcript
from worker.recognizers.port import Audio, Pending, Refused, Result
from worker.work import Work


class PaidRecognizer:
    """The client; with dies it ends its process once the service has accepted an operation."""

    name = "paid"
    label = "Paid"
    lease_seconds = 3600.0
    first_check_delay_seconds = 0.0
    languages: Sequence[str] = ("en",)

    def __init__(self, port: int, *, dies: bool = False, can_find: bool = True) -> None:
        self._port = port
        self._dies = dies
        self._can_find = can_find

    def find(self, intent: str) -> str | None:
        return self._ask("GET", f"/operations?name={intent}") if self._can_find else None

    def start(self, audio: Audio, intent: str) -> str:
        operation_id = self._ask("POST", f"/operations?name={intent}")
        if self._dies:
            os.kill(os.getpid(), signal.SIGKILL)
        assert operation_id is not None
        return operation_id

    def poll(self, operation_id: str, audio: Audio, work: Work) -> Pending | Result | Refused:
        return Result(Transcript(operation_id, (Segment(0, 1, operation_id),)), "en")

    def close(self) -> None:
        pass

    def _ask(self, method: str, path: str) -> str | None:
        line = HTTPConnection("127.0.0.1", self._port, timeout=10)
        line.request(method, path)
        answer: str | None = json.loads(line.getresponse().read())
        line.close()
        return answer


class PaidService:
    """The service: operations by number, each with the name it was asked for by."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.port = 0

    def begin(self, name: str) -> str:
        self.names.append(name)
        return f"operation-{len(self.names)}"

    def find(self, name: str) -> str | None:
        return f"operation-{self.names.index(name) + 1}" if name in self.names else None


@contextmanager
def paid_service() -> Iterator[PaidService]:
    """The service, answering on loopback."""
    service = PaidService()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(service.find(self._name()))

        def do_POST(self) -> None:
            self._answer(service.begin(self._name()))

        def _name(self) -> str:
            return self.path.split("name=")[1]

        def _answer(self, found: str | None) -> None:
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
