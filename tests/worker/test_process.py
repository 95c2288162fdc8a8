"""The worker process between its start and its end, when something inside it breaks."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.clock import utcnow
from app.job import State
from app.liveness import WORKER, alive
from app.migrate import open_database
from app.queue.sqlite import SqliteQueue
from tests.processes import wait_until
from tests.queue.hands import hand_in, held

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def worker(data_dir: Path, breaking: str = "", **settings: str) -> Iterator[subprocess.Popen[str]]:
    """A worker that runs some code of the test's before it starts."""
    code = f"import sys, time\nimport worker.__main__ as w\n{breaking}\nsys.exit(w.main())"
    environ = {
        "PISAR_STORAGE__DATA_DIR": str(data_dir),
        "PISAR_WORKER__METRICS_PORT": "0",
        "PISAR_WORKER__POLL_INTERVAL": "0.1",
        "PISAR_SERVER__SHUTDOWN_TIMEOUT": "0.2",
        "PISAR_SERVER__FORCE_SHUTDOWN_TIMEOUT": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | environ | settings,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if "the worker is ready" in line:
            return
    raise AssertionError("the worker ended before it was ready")


LANE_ENDS = (
    "w.Loop.serve = lambda self, lane: sys.exit() if lane.step == 'check' else self.draining.wait()"
)
LANE_NEVER_STARTS = """
start = w.threading.Thread.start
def refuse(self):
    if self.name.startswith('check'):
        raise RuntimeError("can't start new thread")
    start(self)
w.threading.Thread.start = refuse
"""


@pytest.mark.parametrize("breaking", [LANE_ENDS, LANE_NEVER_STARTS], ids=["ends", "never starts"])
def test_a_worker_that_lost_a_lane_ends_so_that_a_whole_one_is_started(
    tmp_path: Path, breaking: str
) -> None:
    """Otherwise it would look alive for ever while one step is never worked again."""
    with worker(tmp_path, breaking) as process:
        assert process.wait(20) == 1


def test_a_worker_goes_on_when_what_others_left_cannot_be_cleared_up(tmp_path: Path) -> None:
    breaking = "def fall(*_): raise PermissionError\nw.liveness.sweep = fall"
    with worker(tmp_path, breaking) as process:
        until_ready(process)
        assert process.stderr is not None
        assert any("PermissionError" in line for line in process.stderr)
        assert len(alive(tmp_path, WORKER)) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_p44_hazard_26_a_worker_ends_though_another_process_holds_the_writer_lock(
    tmp_path: Path,
) -> None:
    with worker(tmp_path) as process:
        until_ready(process)
        lock = os.open(tmp_path / "pisar.db.lock", os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: process.poll() is not None, 5, "the worker ended")
        finally:
            os.close(lock)


def test_p41_a_killed_workers_job_is_the_first_that_the_next_worker_takes(tmp_path: Path) -> None:
    """With one slot it would else wait for the whole of the job behind it."""
    database = open_database(tmp_path, utcnow())
    queue = SqliteQueue(database)
    lost, behind = hand_in(queue, utcnow()), hand_in(queue, utcnow())
    assert held(queue, now=utcnow(), worker="worker-gone").job.id == lost.id
    slow = "gone = w.liveness.is_gone\ndef ask(*a):\n time.sleep(0.5)\n return gone(*a)\n"
    with worker(tmp_path, slow + "w.liveness.is_gone = ask"):
        # Neither has a file, so each ends as soon as it is begun.
        wait_until(lambda: queue.counts()[State.FAILED] == 2, 20)
    ends = {job.id: queue.events(job.id)[-1].time for job in map(queue.get, (lost.id, behind.id))}
    assert ends[lost.id] < ends[behind.id]
    database.close()


def test_p41_work_begins_though_nobody_can_see_who_is_gone(tmp_path: Path) -> None:
    database = open_database(tmp_path, utcnow())
    queue = SqliteQueue(database)
    lost, waiting = hand_in(queue, utcnow()), hand_in(queue, utcnow())
    assert held(queue, now=utcnow(), worker="worker-gone").job.id == lost.id
    with worker(tmp_path, "def fall(*_): raise PermissionError\nw.liveness.is_gone = fall"):
        wait_until(lambda: queue.get(waiting.id).state is State.FAILED, 20)
    assert queue.get(lost.id).is_running
    database.close()
