"""A Telegram that misbehaves on the wire: each request meets what the test wants of it."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from app.settings import Settings, load

TOKEN = "123456789:AAcanary-the_token_of_a_made_up_bot_0"

Act = Callable[[socket.socket], None]


@dataclass
class Line:
    """What listens on loopback; act answers a request, requests holds their bytes."""

    port: int
    act: Act
    requests: list[bytes] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)

    def settings(self, **more: str) -> Settings:
        """Settings of a bot whose Telegram this is."""
        environ = {
            "PISAR_TELEGRAM__TOKEN": TOKEN,
            "PISAR_TELEGRAM__API_URL": f"http://127.0.0.1:{self.port}",
            "PISAR_TELEGRAM__REQUEST_TIMEOUT": "0.5",
        }
        return load(environ | {f"PISAR_TELEGRAM__{key}": value for key, value in more.items()})


@contextmanager
def line(act: Act) -> Iterator[Line]:
    """A Telegram that does this with each request, until the block is left."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Line(server.getsockname()[1], act)
        thread = threading.Thread(target=_accept, args=(server, found))
        thread.start()
        try:
            yield found
        finally:
            found.ending.set()
            # A closed listener does not wake accept(); a last caller does.
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", found.port), 1).close()
            thread.join(10)


def said(body: object, status: int = 200) -> Act:
    """An answer in Telegram's form, or any other JSON."""
    return raw(json.dumps(body).encode(), status)


def raw(body: bytes, status: int = 200, head: str = "") -> Act:
    """An answer with these bytes."""

    def act(caller: socket.socket) -> None:
        start = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{head}\r\n"
        caller.sendall(start.encode() + body)

    return act


def silent(caller: socket.socket) -> None:
    """Take the request and never answer."""
    caller.settimeout(20)
    with suppress(OSError):
        caller.recv(1)


def dripping(caller: socket.socket) -> None:
    """Answer byte by byte, and never come to an end."""
    caller.sendall(b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n")
    caller.settimeout(0.1)
    with suppress(OSError):
        while True:
            caller.sendall(b" ")
            with suppress(TimeoutError):
                if not caller.recv(1):
                    return


def resetting(caller: socket.socket) -> None:
    """Break the connection off."""
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def closing(caller: socket.socket) -> None:
    """Hang up without a word."""


def _accept(server: socket.socket, found: Line) -> None:
    threads = []
    while not found.ending.is_set():
        caller, _ = server.accept()
        thread = threading.Thread(target=_serve, args=(caller, found))
        thread.start()
        threads.append((thread, caller))
    for thread, caller in threads:
        with suppress(OSError):
            caller.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _serve(caller: socket.socket, found: Line) -> None:
    with caller, suppress(OSError):
        while request := _request(caller):
            found.requests.append(request)
            found.act(caller)
            if found.act in (silent, dripping, resetting, closing):
                return


def _request(caller: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = caller.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        one.split(b":")[1]
        for one in head.split(b"\r\n")
        if one.lower().startswith(b"content-length")
    ]
    while len(body) < int(lengths[0] if lengths else 0):
        body += caller.recv(65536)
    return head + b"\r\n\r\n" + body
