"""Q04: eight processes that write at once: how evenly they are served, how long one waits."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.clock import utcnow
from app.db import Connection, Database
from app.errors import AppError
from app.migrate import DATABASE_NAME, open_database
from app.queue.port import Claim
from app.queue.sqlite import SqliteQueue
from benchmarks.queue.figures import Figure, at_least, at_most, percentile, shown
from benchmarks.queue.plan import Plan
from tests.crew import Crew
from tests.queue.hands import claim, hand_in

_PROCESSES = 8
_LEAST = 0.9
_SLACK_SECONDS = 0.05
_HEAD_START_SECONDS = 1.0
_MS = 1000.0


@dataclass(frozen=True)
class Share:
    """What one process got: its transactions, its waits for the lock and its holds, in seconds."""

    waits: Sequence[float]
    holds: Sequence[float]


def measure(folder: Path, plan: Plan) -> Sequence[Figure]:
    """The rows of Q04."""
    data_dir = folder / "contest"
    open_database(data_dir, utcnow()).close()
    with Crew(_PROCESSES) as crew:
        start = time.monotonic() + _HEAD_START_SECONDS
        given = (data_dir, start, start + plan.contest_seconds)
        shares: list[Share] = crew.all(write, *[given] * _PROCESSES)
    served = [len(share.holds) for share in shares]
    commit = statistics.mean(hold for share in shares for hold in share.holds)
    waits = [wait for share in shares for wait in share.waits]
    limit = (_PROCESSES * commit + _SLACK_SECONDS) * _MS
    rate = sum(served) / plan.contest_seconds
    spread = f"p50 {percentile(waits, 0.5) * _MS:.1f}, p99 {percentile(waits, 0.99) * _MS:.1f} ms"
    return [
        at_least(
            "Q04",
            f"8 writing processes ({rate:.0f} commits/s): least served / most served",
            min(served) / max(served),
            _LEAST,
            "",
        ),
        at_most("Q04", f"longest wait for the lock ({spread})", max(waits) * _MS, limit, " ms"),
        shown("Q04", "a commit among them, from BEGIN to its end, mean", f"{commit * _MS:.2f} ms"),
    ]


def write(data_dir: Path, start: float, end: float) -> Share:
    """In a process of its own: hand in, claim and end jobs without a pause until the end."""
    database = _Timed(data_dir / DATABASE_NAME)
    queue, verdict = SqliteQueue(database), AppError("too_long")
    time.sleep(max(0.0, start - time.monotonic()))
    while time.monotonic() < end:
        hand_in(queue, utcnow())
        if isinstance(held := claim(queue, now=utcnow()), Claim):
            queue.fail(held, verdict, utcnow())
    share = Share(database.waits, database.holds)
    database.close()
    return share


class _Timed(Database):
    """Notes how long each transaction waited for the lock, and how long it then held it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.waits: list[float] = []
        self.holds: list[float] = []

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        began = time.perf_counter()
        with super().transaction() as connection:
            entered = time.perf_counter()
            yield connection
        self.waits.append(entered - began)
        self.holds.append(time.perf_counter() - entered)
