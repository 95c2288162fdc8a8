"""Q24: eight processes write to one store without a pause, one reads; nobody sees it locked."""

import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.clock import utcnow
from app.db import Database
from app.errors import AppError
from app.job import ACTIVE
from app.migrate import DATABASE_NAME, open_database
from app.queue.port import Claim, JobFilter
from app.queue.sqlite import SqliteQueue
from benchmarks.soak.report import Report
from tests.crew import Crew
from tests.queue.hands import RESULTS, claim, hand_in, piece

_WRITERS = 8
_READERS = 1
_HEAD_START_SECONDS = 1.0
_SOON_SECONDS = 0.2
_PAGE = 50
_STATES = "SELECT state FROM transcribe_jobs WHERE deleted IS NULL"


@dataclass
class Seen:
    """What one process met: verbs that were carried out, its longest one, and every fault."""

    verbs: int = 0
    longest_seconds: float = 0.0
    locked: int = 0
    busy: int = 0


def soak(folder: Path, seconds: float, seed: int) -> Report:
    """Write from eight processes for so many seconds, and count what each of them met."""
    data_dir = folder / "data"
    open_database(data_dir, utcnow()).close()
    with Crew(_WRITERS + _READERS) as crew:
        # On a busy machine the processes alone may take longer to start than the crowding lasts.
        crew.all(is_there, *[()] * (_WRITERS + _READERS))
        start = time.monotonic() + _HEAD_START_SECONDS
        for number in range(_WRITERS + _READERS):
            work = write if number < _WRITERS else read
            crew.start(number, work, data_dir, start, start + seconds, seed + number)
        seen: list[Seen] = [crew.answer(number) for number in range(_WRITERS + _READERS)]
    writers, readers = seen[:_WRITERS], seen[_WRITERS:]
    verbs = [each.verbs for each in writers]
    facts = {
        "seconds": f"{seconds:.0f}",
        "verbs that wrote, least and most of a process": f"{min(verbs)}, {max(verbs)}",
        "longest writing verb, seconds": f"{max(each.longest_seconds for each in writers):.3f}",
        "lists read meanwhile": sum(each.verbs for each in readers),
        "longest reading, seconds": f"{max(each.longest_seconds for each in readers):.3f}",
    }
    names = [f"writer {n + 1}" for n in range(_WRITERS)] + ["reader"] * _READERS
    nought = {
        "saw 'database is locked'": [n for n, s in zip(names, seen, strict=True) if s.locked],
        "was told to come later (store_busy)": [
            n for n, s in zip(names, seen, strict=True) if s.busy
        ],
        "found by SQLite or wrong in the counts": _damage(data_dir),
    }
    return Report(f"{_WRITERS} processes writing, {_READERS} reading", facts, nought)


def is_there() -> bool:
    """In a process of its own: it has started, and has read the code."""
    return True


def write(data_dir: Path, start: float, end: float, seed: int) -> Seen:
    """In a process of its own: one random verb after another, as doors, workers and owners call."""
    database = Database(data_dir / DATABASE_NAME)
    queue, chance = SqliteQueue(database), random.Random(seed)  # noqa: S311 - any mixture will do
    seen = _repeat(start, end, lambda: _write_something(queue, chance, f"writer-{seed}"))
    database.close()
    return seen


def read(data_dir: Path, start: float, end: float, seed: int) -> Seen:
    """In a process of its own: the list, the counts and one job after another."""
    database = Database(data_dir / DATABASE_NAME)
    queue = SqliteQueue(database)

    def look() -> None:
        page = queue.page(JobFilter(), before=None, limit=_PAGE)
        queue.counts()
        for job in page.jobs[:2]:
            queue.events(job.id)

    seen = _repeat(start, end, look)
    database.close()
    return seen


def _repeat(start: float, end: float, work: Callable[[], object]) -> Seen:
    seen = Seen()
    time.sleep(max(0.0, start - time.monotonic()))
    while (began := time.monotonic()) < end or not seen.verbs:
        try:
            work()
            seen.verbs += 1
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) and "busy" not in str(error):
                raise
            seen.locked += 1
        except AppError as error:
            # An owner's verb that comes too late is no fault.
            if error.code == "store_busy":
                seen.busy += 1
            elif error.code != "wrong_state":
                raise
        seen.longest_seconds = max(seen.longest_seconds, time.monotonic() - began)
    return seen


def _write_something(queue: SqliteQueue, chance: random.Random, worker: str) -> None:
    now = utcnow()
    if chance.random() < 0.3:
        hand_in(queue, now, sender=worker)
        return
    taken = claim(queue, chance.choice(ACTIVE), now, worker=worker)
    if not isinstance(taken, Claim):
        hand_in(queue, now, sender=worker)
        return
    result = RESULTS[taken.job.state]()
    chance.choices(
        [
            lambda: queue.finish(taken, result, utcnow()),
            lambda: queue.save_piece(taken, piece(), 0.5, utcnow()),
            lambda: queue.snooze(taken, _SOON_SECONDS, utcnow()),
            lambda: queue.retry(taken, AppError("internal"), _SOON_SECONDS, utcnow()),
            lambda: queue.fail(taken, AppError("too_long"), utcnow()),
            lambda: queue.release(taken, utcnow()),
            lambda: queue.cancel(taken.job.id, utcnow()),
            lambda: queue.revive(queue.cancel(taken.job.id, utcnow()).id, utcnow()),
        ],
        weights=[10, 1, 1, 1, 1, 1, 1, 1],
    )[0]()


def _damage(data_dir: Path) -> Sequence[str]:
    database = Database(data_dir / DATABASE_NAME)
    try:
        with database.read() as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            states = Counter(
                row[0] for row in connection.execute("SELECT state FROM transcribe_jobs")
            )
        counts = SqliteQueue(database).counts()
    finally:
        database.close()
    wrong = [f"{state}: {jobs}" for state, jobs in counts.items() if states[state.value] != jobs]
    return [word for word in found if word != "ok"] + wrong
