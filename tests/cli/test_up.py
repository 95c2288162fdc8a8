"""`pisar up` with its real web and worker."""

import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

import pytest

from app import liveness
from app.cli.address import is_listening
from app.settings import load
from tests.cli.console import Console
from tests.processes import children_of, is_running, wait_until

START_SECONDS = 60


class Up:
    """A running `pisar up`."""

    def __init__(self, console: Console, **environ: str) -> None:
        self.console = console
        self.process = console.start("up", **environ)
        self.seen: set[int] = set()

    def wait_until_ready(self) -> None:
        """The address is printed, and the worker is alive."""
        wait_until(lambda: "Pisar is at" in self.console.out(), START_SECONDS, self.console.err())
        data_dir = self.console.data_dir
        wait_until(lambda: liveness.workers_alive(data_dir) == 1, START_SECONDS, "a worker")
        self.seen = children_of(self.process.pid)

    def get(self, path: str) -> str:
        """What the web answers."""
        url = f"http://127.0.0.1:{self.console.environ['PISAR_SERVER__PORT']}{path}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())

    def close(self) -> None:
        """End it and whatever a failed test left."""
        left = self.seen | children_of(self.process.pid)
        self.process.kill()
        self.process.wait()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def up(console: Console) -> Iterator[Up]:
    running = Up(console)
    yield running
    running.close()


def test_up_serves_and_invites_the_owner(up: Up) -> None:
    up.wait_until_ready()
    assert json.loads(up.get("/healthz")) == {"status": "ok"}
    address, invitation = up.console.out().splitlines()
    port = up.console.environ["PISAR_SERVER__PORT"]
    assert address == f"Pisar is at http://127.0.0.1:{port}"
    assert f"http://127.0.0.1:{port}/setup#" in invitation
    secret = invitation.partition("#")[2]
    assert secret not in up.console.err(), "the invitation is a secret: it stays out of the log"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_q27_a_stop_ends_all_in_order_and_leaves_no_child(up: Up, number: int) -> None:
    up.wait_until_ready()
    assert len(up.seen) == 2
    up.process.send_signal(number)
    assert up.process.wait(20) == 0
    assert not any(is_running(pid) for pid in up.seen)
    assert "did not stop in time" not in up.console.err()
    assert liveness.alive(up.console.data_dir, liveness.WEB) == []
    assert liveness.alive(up.console.data_dir, liveness.WORKER) == []


def test_the_web_and_the_worker_end_with_a_killed_supervisor(up: Up) -> None:
    up.wait_until_ready()
    up.process.kill()
    up.process.wait()
    wait_until(lambda: not any(is_running(pid) for pid in up.seen), 30, "no child is left")


def test_a_killed_worker_is_started_again(up: Up) -> None:
    up.wait_until_ready()
    (name,) = liveness.alive(up.console.data_dir, liveness.WORKER)
    worker = next(pid for pid in up.seen if "worker" in command_line(pid))
    os.kill(worker, signal.SIGKILL)
    wait_until(
        lambda: liveness.alive(up.console.data_dir, liveness.WORKER) not in ([], [name]),
        START_SECONDS,
        "another worker",
    )
    assert json.loads(up.get("/healthz")) == {"status": "ok"}


def test_a_taken_port_is_told_and_stops_the_start(console: Console) -> None:
    with socket.create_server(("127.0.0.1", int(console.environ["PISAR_SERVER__PORT"]))):
        answer = console.run("up")
    assert answer.code == 1
    assert "server.port" in answer.err.splitlines()[-1]


def test_metrics_are_shown_on_a_loopback_port_of_each_process(
    console: Console, free_port: int
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        web_port, worker_port = one.getsockname()[1], two.getsockname()[1]
    up = Up(
        console,
        PISAR_SERVER__METRICS_PORT=str(web_port),
        PISAR_WORKER__METRICS_PORT=str(worker_port),
    )
    try:
        up.wait_until_ready()
        for port, series in (
            (web_port, 'transcriber_jobs{state="dead"} 0.0'),
            (worker_port, 'transcriber_worker_runs_total{outcome="failure",step="check"} 0.0'),
        ):
            url = f"http://127.0.0.1:{port}/metrics"
            with urllib.request.urlopen(url, timeout=10) as answer:
                assert series in answer.read().decode()
    finally:
        up.close()


def test_pisar_worker_is_the_worker_itself(console: Console) -> None:
    worker = console.start("worker")
    try:
        wait_until(lambda: "the worker is ready" in console.err(), START_SECONDS)
        assert liveness.workers_alive(console.data_dir) == 1
        worker.terminate()
        assert worker.wait(20) == 0
    finally:
        worker.kill()
        worker.wait()


def test_pisar_web_alone_says_that_no_worker_runs(console: Console) -> None:
    web = console.start("web")
    try:
        wait_until(lambda: liveness.alive(console.data_dir, liveness.WEB) != [], START_SECONDS)
        answer = console.run("check")
        assert answer.code == 1
        assert "broken  worker" in answer.out
        assert "pisar worker" in answer.out
        wait_until(lambda: is_listening(load(console.environ)), START_SECONDS)
        web.terminate()
        assert web.wait(20) == 0
    finally:
        web.kill()
        web.wait()


def command_line(pid: int) -> str:
    listed = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, check=False)
    return listed.stdout.decode()
