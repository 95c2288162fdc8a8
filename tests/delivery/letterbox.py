"""A messenger over real HTTP, and the server it posts to, which remembers what arrived."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from app.delivery import Undeliverable
from app.queue.replies import Owed, Reason


class HttpMessenger:
    """Posts each part to a loopback server; part_count messages make a reply.

    A 403 is a refusal for good. after_send runs once a part has arrived, before it is recorded.
    """

    def __init__(
        self, port: int, part_count: int = 1, after_send: Callable[[int], None] = lambda _: None
    ) -> None:
        self._port = port
        self._part_count = part_count
        self._after_send = after_send

    def parts(self, owed: Owed) -> Sequence[str]:
        text = owed.transcript.text if owed.transcript else owed.reply.verdict.value
        return [f"{text} {number}" for number in range(self._part_count)]

    def send(self, owed: Owed, number: int, part: str) -> None:
        line = HTTPConnection("127.0.0.1", self._port, timeout=10)
        line.request("POST", f"/{owed.job.id}/{number}", part.encode())
        status = line.getresponse().status
        line.close()
        if status == 403:
            raise Undeliverable(Reason.REJECTED)
        self._after_send(number)


class Letterbox:
    """What arrived, in order: (path, text)."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port = server.server_port
        self.letters: list[tuple[str, str]] = []
        self.status = 200

    def parts_of(self, job_id: str) -> list[str]:
        """The numbers of the parts that arrived for a job."""
        return [path.rsplit("/", 1)[1] for path, _ in self.letters if job_id in path]


@contextmanager
def letterbox() -> Iterator[Letterbox]:
    """A running server on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if box.status == 200:
                box.letters.append((self.path, text))
            self.send_response(box.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    box = Letterbox(server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield box
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
