"""Q01: how much of the disk's own rate the queue's commits reach, in alternating turns."""

import os
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from app.clock import utcnow
from app.errors import AppError
from app.migrate import open_database
from app.queue.sqlite import SqliteQueue
from benchmarks.queue.figures import Figure, at_least, shown
from benchmarks.queue.plan import Plan
from tests.queue.hands import hand_in, held

_PAGE_BYTES = 4096
_LEAST = 0.75
_THREADS = 8
_DISK = "disk"
# Alternately, so that there is always something to claim.
_JUDGED = ("enqueue", "claim and finish")


def measure(folder: Path, plan: Plan) -> Sequence[Figure]:
    """The rows of Q01.

    The bare table says what SQLite itself reaches at FULL with one row and no index: its log is
    written in frames that lie across the disk's pages, the probe's pages do not. The threads hand
    in at once, as those of the web do, and may share a commit.
    """
    turn = plan.commit_turn
    database = open_database(folder / "commits", utcnow())
    queue = SqliteQueue(database)
    bare = _bare_table(folder / "bare.db")
    rates: dict[str, list[float]] = {}
    works: Mapping[str, Callable[[], float]] = {
        _DISK: lambda: _appends_a_second(folder / "probe", turn),
        "bare SQLite": lambda: _inserts_a_second(bare, turn),
        "enqueue": lambda: _hand_ins_a_second(queue, turn),
        "claim and finish": lambda: _pairs_a_second(queue, turn),
        "enqueue by threads": lambda: _together_a_second(queue, turn * 2),
    }
    try:
        for _ in range(plan.commit_rounds):
            for name, work in works.items():
                rates.setdefault(name, []).append(work())
        spent = {name: _processor_ms(works[name], turn) for name in _JUDGED}
    finally:
        bare.close()
        database.close()
    ratio = {
        name: statistics.median(a / b for a, b in zip(found, rates[_DISK], strict=True))
        for name, found in rates.items()
    }
    told = {name: f"{statistics.median(found):.0f}/s" for name, found in rates.items()}
    what = "commits at FULL, of the disk's rate: {0} ({1})"
    return [
        shown("Q01", "the disk: append of 4 KiB and fdatasync", told[_DISK]),
        shown(
            "Q01",
            what.format("SQLite bare, one row, no index", told["bare SQLite"]),
            f"{ratio['bare SQLite']:.3g}×",
        ),
        *(at_least("Q01", what.format(name, told[name]), ratio[name], _LEAST) for name in _JUDGED),
        *(
            shown("Q01", f"processor time of a commit: {name}", f"{spent[name]:.2f} ms")
            for name in _JUDGED
        ),
        at_least(
            "Q01",
            what.format(f"enqueue by {_THREADS} threads", told["enqueue by threads"]),
            ratio["enqueue by threads"],
            _LEAST,
        ),
    ]


def _processor_ms(work: Callable[[], float], commits: int) -> float:
    """What a commit costs without the disk: on one faster than this, it is what bounds the rate."""
    began = time.process_time()
    work()
    return (time.process_time() - began) / commits * 1000


def _appends_a_second(path: Path, count: int) -> float:
    page = os.urandom(_PAGE_BYTES)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        began = time.perf_counter()
        for number in range(count):
            os.pwrite(descriptor, page, number * _PAGE_BYTES)
            os.fdatasync(descriptor)
        return count / (time.perf_counter() - began)
    finally:
        os.close(descriptor)
        path.unlink()


def _bare_table(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("CREATE TABLE rows(number INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
    return connection


def _inserts_a_second(connection: sqlite3.Connection, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        connection.execute("INSERT INTO rows(text) VALUES('A row of some length.')")
    return count / (time.perf_counter() - began)


def _hand_ins_a_second(queue: SqliteQueue, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        hand_in(queue, utcnow())
    return count / (time.perf_counter() - began)


def _pairs_a_second(queue: SqliteQueue, commits: int) -> float:
    """Commits a second, two for each job: it is claimed and ends."""
    verdict = AppError("too_long")
    began = time.perf_counter()
    for _ in range(commits // 2):
        queue.fail(held(queue, now=utcnow()), verdict, utcnow())
    return commits // 2 * 2 / (time.perf_counter() - began)


def _together_a_second(queue: SqliteQueue, count: int) -> float:
    def hand_in_a_share() -> None:
        for _ in range(count // _THREADS):
            hand_in(queue, utcnow())

    threads = [threading.Thread(target=hand_in_a_share) for _ in range(_THREADS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count // _THREADS * _THREADS / (time.perf_counter() - began)
