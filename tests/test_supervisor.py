import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.supervisor import restart_pause_seconds
from tests.processes import children_of, is_running, wait_until

# A parent that supervises the processes that its arguments give as Python code.
PARENT = """
import sys
from app import log, settings, supervisor
found = settings.load()
log.setup(found.log, "up")
commands = {f"role{n}": [sys.executable, "-c", code] for n, code in enumerate(sys.argv[1:])}
supervise = supervisor.Supervisor(found, commands).run
sys.exit(supervise(lambda: True, lambda: print("ready", flush=True)))
"""
PATIENT = "import time; time.sleep(600)"
GRACEFUL = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(600)"
STUBBORN = (
    "import signal, time, pathlib; signal.signal(15, signal.SIG_IGN);"
    "pathlib.Path('deaf').touch(); time.sleep(600)"
)


@pytest.fixture
def up(tmp_path: Path) -> Iterator["Up"]:
    running = Up(tmp_path)
    yield running
    running.kill()


class Up:
    """A supervisor in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: set[int] = set()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *codes: str, hard_timeout: float = 5) -> int:
        with (self.folder / "log").open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PARENT, *codes],
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=file,
                env={
                    **os.environ,
                    "PYTHONPATH": str(Path(__file__).parent.parent),
                    "PISAR_SERVER__FORCE_SHUTDOWN_TIMEOUT": str(hard_timeout),
                },
            )
        return self.process.pid

    def children(self, count: int) -> set[int]:
        """The supervisor's children, once there are that many."""
        assert self.process
        pid = self.process.pid
        wait_until(lambda: len(self._living(pid)) == count, what=f"{count} children")
        self.seen |= self._living(pid)
        return self._living(pid)

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def kill(self) -> None:
        assert self.process
        self.seen |= children_of(self.process.pid)
        self.process.kill()
        self.process.wait()
        for pid in self.seen:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    def _living(pid: int) -> set[int]:
        return {child for child in children_of(pid) if is_running(child)}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_leaves_no_child(up: Up, number: int) -> None:
    pid = up.start(PATIENT, GRACEFUL)
    children = up.children(2)
    os.kill(pid, number)
    assert up.process and up.process.wait(10) == 0
    assert not any(is_running(child) for child in children)
    assert "did not stop in time" not in up.log()


def test_a_child_that_ignores_the_stop_is_killed_at_the_hard_timeout(up: Up) -> None:
    pid = up.start(STUBBORN, GRACEFUL, hard_timeout=1)
    children = up.children(2)
    wait_until((up.folder / "deaf").exists)
    began = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    assert up.process and up.process.wait(10) == 0
    assert 1 <= time.monotonic() - began < 3
    assert not any(is_running(child) for child in children)
    assert "did not stop in time" in up.log()


def test_a_second_stop_hastens(up: Up) -> None:
    pid = up.start(STUBBORN, hard_timeout=60)
    children = up.children(1)
    wait_until((up.folder / "deaf").exists)
    os.kill(pid, signal.SIGINT)
    wait_until(lambda: "stopping" in up.log())
    os.kill(pid, signal.SIGINT)
    assert up.process and up.process.wait(10) == 0
    assert not any(is_running(child) for child in children)


def test_children_end_with_a_supervisor_that_was_killed(up: Up) -> None:
    pid = up.start(PATIENT, GRACEFUL)
    children = up.children(2)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(is_running(child) for child in children), what="children gone")


def test_a_child_that_ends_is_started_again(up: Up) -> None:
    up.start(PATIENT)
    (first,) = up.children(1)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not is_running(first))
    (second,) = up.children(1)
    assert second != first
    assert '"exit_code": -9' in up.log()


def test_a_child_with_bad_settings_stops_everything_with_78(up: Up) -> None:
    up.start(GRACEFUL, "raise SystemExit(78)")
    assert up.process and up.process.wait(10) == 78
    assert not children_of(up.process.pid)


def test_a_terminal_interrupt_reaches_the_supervisor_alone(up: Up) -> None:
    pid = up.start(PATIENT, PATIENT)
    groups = {os.getpgid(child) for child in up.children(2)}
    assert len(groups) == 2
    assert os.getpgid(pid) not in groups


def test_the_pause_before_a_restart_grows_up_to_thirty_seconds() -> None:
    pauses = [restart_pause_seconds(failures) for failures in (1, 2, 3, 4, 5, 6, 100)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
