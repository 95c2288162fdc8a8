"""The real web process on a port of its own, and a plain socket to speak to it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.resources import ROOT
from tests.processes import wait_until

COMMAND = (sys.executable, "-m", "app", "web")


class Site:
    """A running web process."""

    def __init__(self, data_dir: Path, port: int, metrics_port: int, log: Path, **env: str) -> None:
        self.data_dir = data_dir
        self.port = port
        self.metrics_port = metrics_port
        self.log = log
        self.env = {
            **os.environ,
            "PISAR_STORAGE__DATA_DIR": str(data_dir),
            "PISAR_SERVER__PORT": str(port),
            "PISAR_SERVER__METRICS_PORT": str(metrics_port),
            **env,
        }
        self.process = self._start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=20)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        return json.loads(self.ask("GET", path)[2])

    def dial(self, timeout: float = 20) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def stored(self) -> list[Path]:
        """Every file that a recording could have left."""
        return [
            path
            for folder in ("storage", "tmp")
            for path in (self.data_dir / folder).rglob("*")
            if path.is_file()
        ]

    def unnamed_bytes(self) -> int:
        """Bytes of deleted files that the process still holds open."""
        total = 0
        for entry in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                if "(deleted)" in str(entry.readlink()):
                    total += entry.stat().st_size
            except FileNotFoundError:
                continue
        return total

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)

    def restart(self) -> None:
        """Start it again after its end, on the same port."""
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            process = subprocess.Popen(COMMAND, env=self.env, stdout=log, stderr=log, cwd=ROOT)
        try:
            wait_until(lambda: self._answers(process), 30, "the web answers")
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process

    def _answers(self, process: "subprocess.Popen[bytes]") -> bool:
        assert process.poll() is None, self.log.read_text()
        try:
            self.dial(1).close()
        except OSError:
            return False
        return True


@contextmanager
def running(tmp_path: Path, **env: str) -> Iterator[Site]:
    """A web process that is gone afterwards."""
    site = Site(tmp_path / "data", free_port(), free_port(), tmp_path / "log.txt", **env)
    try:
        yield site
    finally:
        if site.process.poll() is None:
            site.process.kill()
            site.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def read_answer(connection: socket.socket) -> bytes:
    """All that the server says until it closes its side."""
    said = b""
    while block := connection.recv(65536):
        said += block
    return said
