"""What the processes of tests/crew.py do; each function is called by name in another process."""

import signal
import sqlite3
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

from app.db import Database
from app.job import State
from app.liveness import Presence, is_gone, sweep
from app.migrate import DATABASE_NAME, applied_steps, open_database
from app.queue.port import Claim
from app.queue.sqlite import SqliteQueue
from tests.processes import wait_until

NOW = datetime(2026, 3, 1, 12, 0, 0, 123000, tzinfo=UTC)


def start_together(moment: float) -> None:
    """Spin up to a moment of the monotonic clock, which all processes share."""
    while time.monotonic() < moment:
        pass


def open_at(moment: float, data_dir: Path) -> list[str]:
    """The steps that stand once this process has opened the store."""
    start_together(moment)
    database = open_database(data_dir, NOW)
    try:
        return list(applied_steps(database))
    finally:
        database.close()


def write_notes(path: Path, who: int, count: int) -> float:
    """Write so many rows, one commit each; gives the longest wait in seconds."""
    database = Database(path)
    longest = 0.0
    for number in range(count):
        started = time.monotonic()
        with database.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES(?, ?)", (who, number))
        longest = max(longest, time.monotonic() - started)
        with database.read() as connection:
            written = connection.execute("SELECT count(*) FROM notes WHERE who = ?", (who,))
            assert written.fetchone()[0] == number + 1
    database.close()
    return longest


def hold_exclusively(path: Path, held: Path, release: Path) -> None:
    """A foreign program that knows nothing of our lock file."""
    foreign = sqlite3.connect(path, isolation_level=None)
    foreign.execute("BEGIN EXCLUSIVE")
    held.touch()
    wait_until(release.exists, 60, "the word to let go")
    foreign.execute("ROLLBACK")
    foreign.close()


def stay_inside(path: Path, inside: Path) -> None:
    """Write half of something, and never get to the other half."""
    database = Database(path)
    with database.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES(0, 0)")
        inside.touch()
        signal.pause()


def write_pairs_for_ever(path: Path, begun: Path) -> None:
    """Two rows a transaction, transaction after transaction."""
    database = Database(path)
    number = 0
    while True:
        with database.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES(1, ?)", (number,))
            connection.execute("INSERT INTO notes VALUES(2, ?)", (number,))
        number += 1
        begun.touch()


def live(data_dir: Path) -> tuple[str, int]:
    """Be alive until killed, beside a child that outlives us; gives our name and the child."""
    presence = Presence(data_dir, "worker")
    (presence.scratch / "half-done").write_text("half")
    _KEPT.append(presence)
    # A child that is given all we have: only close-on-exec keeps our lock from it.
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, close_fds=False)
    return presence.name, child.pid


_KEPT: list[Presence] = []


def come_and_go(moment: float, data_dir: Path, rounds: int) -> int:
    """Start and end so many times; gives how often the scratch directory was taken away."""
    start_together(moment)
    missing = 0
    for _ in range(rounds):
        presence = Presence(data_dir, "worker")
        (presence.scratch / "work").write_text("work")
        for _ in range(20):
            missing += is_gone(data_dir, presence.name) or not presence.scratch.is_dir()
        presence.close()
    return missing


def sweep_often(moment: float, data_dir: Path, rounds: int) -> int:
    start_together(moment)
    return sum(sweep(data_dir) for _ in range(rounds))


def ask_often(moment: float, data_dir: Path, name: str, rounds: int) -> int:
    """How often a process was judged gone."""
    start_together(moment)
    return sum(is_gone(data_dir, name) for _ in range(rounds))


def claim_at(moment: float, data_dir: Path, worker: str) -> str | None:
    """The id of the job that this process got."""
    database = open_database(data_dir, NOW)
    queue = SqliteQueue(database)
    try:
        start_together(moment)
        got = queue.claim(State.CREATED, worker=worker, lease_seconds=3600, max_attempts=5, now=NOW)
        return got.job.id if isinstance(got, Claim) else None
    finally:
        database.close()


def claim_all(moment: float, data_dir: Path, worker: str) -> list[int]:
    """The acceptance numbers of the jobs that this process got, until none was left."""
    database = open_database(data_dir, NOW)
    queue = SqliteQueue(database)
    found = []
    start_together(moment)
    while True:
        got = queue.claim(State.CREATED, worker=worker, lease_seconds=3600, max_attempts=5, now=NOW)
        if not isinstance(got, Claim):
            database.close()
            return found
        found.append(got.job.seq)


def rows_of(data_dir: Path, statement: str) -> list[tuple[object, ...]]:
    """What a statement gives to another process."""
    connection = sqlite3.connect(data_dir / DATABASE_NAME)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()
