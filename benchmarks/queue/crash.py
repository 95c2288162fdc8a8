"""Q05: a worker is killed with its job in hand; how soon another runs that job."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from app.clock import utcnow
from benchmarks.queue.figures import Figure, at_most, percentile, shown
from benchmarks.queue.plan import Plan
from tests.service.house import Service, service
from tests.speech import DATA

_MOST_SECONDS = 2.0
_WORKERS = 2
_READY = "the worker is ready"
_GIVE_UP_SECONDS = 60.0
_LOOK_SECONDS = 0.001
_STORE_REFUSES = """
CREATE TRIGGER held BEFORE UPDATE OF state ON transcribe_jobs
WHEN NEW.state = 'converted'
BEGIN SELECT RAISE(ABORT, 'held back by the benchmark'); END
"""
"""A step whose result is refused keeps its job and tries again: held for as long as needed."""


def measure(folder: Path, plan: Plan) -> Sequence[Figure]:
    """The rows of Q05: real workers with their default settings."""
    with service(folder / "crash", WORKER__POLL_INTERVAL="1") as running:
        with running.house.database.transaction() as connection:
            connection.execute(_STORE_REFUSES)
        workers = [running.start_worker() for _ in range(_WORKERS)]
        seconds = [_killed_to_running(running, workers) for _ in range(plan.kills)]
    median = percentile(seconds, 0.5)
    return [
        at_most(
            "Q05",
            f"SIGKILL to running again, longest of {plan.kills}",
            max(seconds),
            _MOST_SECONDS,
            " s",
        ),
        shown("Q05", "the same, median", f"{median:.3f} s"),
    ]


def _killed_to_running(running: Service, workers: "list[subprocess.Popen[bytes]]") -> float:
    """Kill the worker that holds a fresh job; gives the seconds until another has claimed it.

    A fresh one each time: the second loss of one job is followed by a pause, by intention.
    """
    job = running.hand_in(DATA / "english-short.mp3").id
    running.wait(lambda: running.queue.get(job).worker is not None, 60, "a worker holds the job")
    running.wait(lambda: _ready(running) == len(workers), 60, "all workers are ready")
    holder = running.queue.get(job).worker
    victim = next(worker for worker in workers if _is_named(worker.pid, str(holder)))
    began = time.perf_counter()
    os.kill(victim.pid, signal.SIGKILL)
    while running.queue.get(job).worker in (None, holder):
        if time.perf_counter() - began > _GIVE_UP_SECONDS:
            raise RuntimeError("the job of a killed worker is not taken up")
        time.sleep(_LOOK_SECONDS)
    seconds = time.perf_counter() - began
    victim.wait()
    running.queue.cancel(job, utcnow())
    workers.append(running.start_worker())
    return seconds


def _ready(running: Service) -> int:
    """How many workers have come up so far."""
    return running.log_path.read_text().count(_READY) if running.log_path.exists() else 0


def _is_named(pid: int, worker: str) -> bool:
    """True for the process that keeps the lock of that name."""
    try:
        return any(
            entry.readlink().name == f"{worker}.lock" for entry in Path(f"/proc/{pid}/fd").iterdir()
        )
    except FileNotFoundError:
        return False
