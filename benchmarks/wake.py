"""Q06: how soon a waiting worker takes a job up, with the bell and by the poll alone.

    python -m benchmarks.wake --rounds 200 --idle-seconds 60

The worker is `python -m worker` with the default settings. A round hands in bytes that are no
recording, at a random moment of the poll, and waits until the worker has claimed the job, as
another process sees it; then until the job has ended and the worker rests again. The time runs
from the commit that makes the job accepted. CPU is user and system time of the worker process,
all threads together, from the kernel's clock of that process, while nothing is handed in.
What the disk takes for one synced append is shown beside it: a claim is one commit.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app import bell
from app.assembly import House, opened
from app.clock import utcnow
from app.intake import Intake
from app.job import Job, Source
from app.liveness import COMMAND
from app.queue.sqlite import SqliteQueue
from app.settings import Settings, child_environment, load
from tests.processes import wait_until

_LOOK_SECONDS = 0.0002
_MS = 1000.0
_PAGE_BYTES = 4096
_IS_UNTOUCHED = "SELECT state = 'created' AND attempts = 0 FROM transcribe_jobs WHERE id = ?"
_SETTLE_SECONDS = 3.0
"""From the worker's start to the first figure: imports and the first sweep are not waiting."""


class Hands:
    """Hands jobs in, and notes when each was accepted."""

    def __init__(self, house: House, ring: Callable[[], None]) -> None:
        self._house = house
        self._ring = ring
        self._accepted_at = 0.0
        queue = SqliteQueue(house.database, on_ready=self._note)
        self._intake = Intake(house.settings, queue, house.storage)

    def seconds_to_claim(self) -> float:
        """Hand one job in; gives how long it waited, and returns when all is quiet again."""
        time.sleep(random.uniform(0, self._house.settings.worker.poll_interval))  # noqa: S311
        job = self._hand_in()
        while not self._is_taken_up(job):
            time.sleep(_LOOK_SECONDS)
        seconds = time.perf_counter() - self._accepted_at
        wait_until(lambda: not self._house.queue.get(job.id).state.is_active, 60, "its end")
        return seconds

    def _hand_in(self) -> Job:
        draft = self._intake.draft()
        draft.write(b"no recording at all")
        return self._intake.accept(
            draft,
            source=Source.API,
            display_name="wake",
            language=None,
            sender=None,
            now=utcnow(),
        ).job

    def _note(self) -> None:
        self._accepted_at = time.perf_counter()
        self._ring()

    def _is_taken_up(self, job: Job) -> bool:
        # By hand: reading a whole job so often would keep the worker's core busy.
        with self._house.database.read() as connection:
            (is_untouched,) = connection.execute(_IS_UNTOUCHED, (job.id,)).fetchone()
        return not is_untouched


def main() -> None:
    """Print the figures of Q06."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--idle-seconds", type=float, default=60)
    options = parser.parse_args()
    rounds = options.rounds
    with tempfile.TemporaryDirectory(prefix="pisar-bench-") as name:
        wakes = measure(Path(name), rounds, options.idle_seconds)
    print(f"accepted to claimed, ms, {rounds} rounds each (Q06: p50 at most 5, p99 at most 50)")
    print(f"{'':<12}{'p50':>8}{'p99':>8}{'max':>8}")
    for name, found in wakes.seconds.items():
        figures = (found[rounds // 2], found[min(rounds * 99 // 100, rounds - 1)], found[-1])
        print(f"{name:<12}" + "".join(f"{figure * _MS:>8.1f}" for figure in figures))
    print(f"load of the machine, 1 minute: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"idle CPU of the worker: {wakes.idle_ms:.2f} ms a second (Q06: at most 2)")


@dataclass(frozen=True)
class Wakes:
    """Seconds from accepted to claimed by each way, sorted; CPU ms a second of an idle worker."""

    seconds: Mapping[str, Sequence[float]]
    idle_ms: float


def measure(folder: Path, rounds: int, idle_seconds: float) -> Wakes:
    """A service in a folder of its own, first left alone, then woken so many times by each way."""
    settings = load(
        {"PISAR_STORAGE__DATA_DIR": f"{folder}/data", "PISAR_WORKER__METRICS_PORT": "0"}
    )
    with opened(settings, COMMAND) as house, _worker(settings) as pid:
        time.sleep(_SETTLE_SECONDS)
        idle_ms = _idle_ms_per_second(pid, idle_seconds)
        return Wakes(_compared(house, rounds), idle_ms)


def _compared(house: House, rounds: int) -> Mapping[str, Sequence[float]]:
    """The two ways take turns, since other work on the machine comes and goes."""
    data_dir = house.settings.storage.data_dir
    ways: dict[str, Callable[[], float]] = {
        "bell": Hands(house, partial(bell.ring, data_dir)).seconds_to_claim,
        "poll alone": Hands(house, lambda: None).seconds_to_claim,
        "disk alone": partial(_seconds_to_sync, data_dir / "probe"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            seconds[name].append(way())
    return {name: sorted(found) for name, found in seconds.items()}


def _seconds_to_sync(path: Path) -> float:
    with path.open("ab", buffering=0) as file:
        began = time.perf_counter()
        file.write(bytes(_PAGE_BYTES))
        os.fdatasync(file.fileno())
        return time.perf_counter() - began


@contextmanager
def _worker(settings: Settings) -> Iterator[int]:
    log_path = Path(settings.storage.data_dir) / "worker.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "worker"],
            env=os.environ | child_environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(lambda: "the worker is ready" in log_path.read_text(), 60, "a ready worker")
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def _idle_ms_per_second(pid: int, seconds: float) -> float:
    before, began = _cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (_cpu_seconds(pid) - before) / (time.monotonic() - began) * _MS


def _cpu_seconds(pid: int) -> float:
    """Like clock_getcpuclockid(3): /proc/PID/stat counts in steps of 10 ms, too rough for this."""
    return time.clock_gettime((~pid << 3) | 2)


if __name__ == "__main__":
    main()
