import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes import children_of, is_running, wait_until
from worker.child import Child, ChildFailed, Reason
from worker.work import Stopped

ROOT = Path(__file__).resolve().parents[2]
NEVER: Callable[[], bool] = lambda: False  # noqa: E731


def start(*arguments: str, **environment: str) -> Child:
    return Child.start("tests.worker.troublemakers", arguments, environment=environment)


def talk(child: Child, seconds: float = 20, stall: float = 20, stopped: Callable[[], bool] = NEVER):
    return child.messages(timeout_seconds=seconds, stall_seconds=stall, stopped=stopped)


@pytest.fixture
def no_child_is_left() -> Iterator[None]:
    before = children_of()
    yield
    assert children_of() <= before


pytestmark = pytest.mark.usefixtures("no_child_is_left")


def test_a_warm_child_answers_one_message_after_another() -> None:
    with start("echo") as child:
        for number in range(3):
            child.send({"number": number})
            assert next(talk(child)) == {"echo": {"number": number}}
        assert child.is_alive
    assert not child.is_alive


def test_cm19_a_child_inherits_no_secret_and_no_descriptor(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PISAR_TELEGRAM__TOKEN", "canary")
    with (tmp_path / "open").open("wb") as file:
        os.set_inheritable(file.fileno(), True)
        with start("tell_environment", OMP_NUM_THREADS="2") as child:
            message = next(talk(child))
    assert set(message["environment"]) <= {
        "PATH", "LANG", "HOME", "PYTHONPATH", "OMP_NUM_THREADS", "LC_CTYPE",
    }  # fmt: skip
    # stdin, stdout, stderr, the channel's own copy, and the one that lists the folder.
    assert len(message["descriptors"]) == 5


@pytest.mark.parametrize(
    "mode", ["sleep", "write_to_stderr_endlessly", "ignore_sigterm_and_start_another"]
)
def test_cm15_a_child_without_progress_is_killed_at_the_limit(mode: str) -> None:
    started = time.monotonic()
    with pytest.raises(ChildFailed) as caught, start(mode) as child:
        for _ in talk(child, stall=0.7):
            pass
    assert caught.value.reason is Reason.STALLED
    assert caught.value.exit_code == -signal.SIGKILL
    assert len(caught.value.last_words) <= 4096
    assert time.monotonic() - started < 5


def test_cm15_the_whole_group_of_the_child_is_killed() -> None:
    child = start("ignore_sigterm_and_start_another")
    grandchild = next(talk(child))["grandchild"]
    assert is_running(grandchild)
    child.close()
    wait_until(lambda: not is_running(grandchild))


def test_cm15_progress_without_end_is_stopped_by_the_time_limit() -> None:
    with pytest.raises(ChildFailed) as caught, start("report_endlessly") as child:
        for _ in talk(child, seconds=1):
            pass
    assert caught.value.reason is Reason.LATE


@pytest.mark.parametrize("mode", ["sleep", "report_endlessly", "write_to_stderr_endlessly"])
def test_p44_a_told_stop_ends_the_child_within_a_second(mode: str) -> None:
    asked: list[float] = []
    told = threading.Event()

    def stopped() -> bool:
        asked.append(time.monotonic())
        return told.is_set()

    threading.Timer(1, told.set).start()
    with pytest.raises(Stopped), start(mode) as child:
        for _ in talk(child, stopped=stopped):
            pass
    assert told.is_set()
    assert max(later - sooner for sooner, later in itertools.pairwise(asked)) < 0.5
    assert len(asked) >= 5


def test_what_a_library_prints_does_not_reach_the_parent_and_rubbish_ends_the_child() -> None:
    with start("print_and_write_rubbish") as child:
        messages = talk(child)
        assert next(messages) == {"after": "print"}
        with pytest.raises(ChildFailed) as caught:
            next(messages)
    assert caught.value.reason is Reason.GONE


@pytest.mark.parametrize(
    ("arguments", "exit_code"), [(("leave_with", "3"), 3), (("crash",), -signal.SIGSEGV)]
)
def test_a_child_that_ends_by_itself_shows_its_exit_code(
    arguments: tuple[str, ...], exit_code: int
) -> None:
    with pytest.raises(ChildFailed) as caught, start(*arguments) as child:
        next(talk(child))
    assert (caught.value.reason, caught.value.exit_code) == (Reason.GONE, exit_code)
    assert "last words" not in str(caught.value)


def test_a_message_to_a_child_that_does_not_read_ends_it() -> None:
    child = start("sleep")
    next(talk(child))
    with pytest.raises(ChildFailed) as caught:
        child.send({"much": "x" * 1_000_000}, timeout_seconds=0.5)
    assert caught.value.reason is Reason.STALLED


def test_a_child_outlives_the_thread_that_asked_for_it() -> None:
    started: list[Child] = []

    def ask() -> None:
        child = start("echo")
        child.send({"life": "tied"})
        next(talk(child))
        started.append(child)

    thread = threading.Thread(target=ask)
    thread.start()
    task = Path(f"/proc/self/task/{thread.native_id}")
    thread.join()
    wait_until(lambda: not task.exists())
    with started[0] as child:
        child.send({"still": "here"})
        assert next(talk(child)) == {"echo": {"still": "here"}}


def test_a_child_dies_with_its_parent() -> None:
    script = (
        "from worker.child import Child\n"
        "child = Child.start('tests.worker.troublemakers', ['sleep'])\n"
        "never = lambda: False\n"
        "next(child.messages(timeout_seconds=20, stall_seconds=20, stopped=never))\n"
        "print(child.pid, flush=True)\n"
        "input()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdin and parent.stdout
    with parent:
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
        parent.wait()
        wait_until(lambda: not is_running(pid))
