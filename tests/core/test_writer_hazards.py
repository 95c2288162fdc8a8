"""What goes wrong with SQLite as a queue, shown not to go wrong here: on real processes."""

import fcntl
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db import Database
from app.errors import AppError
from app.writer_lock import WriterLock
from tests import chores
from tests.core import writing
from tests.core.writing import count, note
from tests.crew import Crew
from tests.processes import wait_until


@pytest.fixture
def notes(database: Database) -> Database:
    with database.transaction() as connection:
        connection.execute("CREATE TABLE notes(who INTEGER, number INTEGER) STRICT")
    return database


@pytest.fixture
def doomed() -> Iterator[Crew]:
    """Processes that a test may stop, kill or leave waiting."""
    with Crew(2) as members:
        yield members


def impatient_note(path: Path) -> None:
    """One try to write, with a short deadline."""
    impatient = Database(path, 0.2)
    try:
        note(impatient, 0, 0)
    finally:
        impatient.close()


def test_hazard_07_no_reader_is_refused_when_it_goes_on_to_write(
    notes: Database, crew: Crew
) -> None:
    crew.all(writing.count_up, *[(notes.path, 40)] * 4)
    with notes.read() as connection:
        numbers = [row[0] for row in connection.execute("SELECT number FROM notes ORDER BY rowid")]
    assert numbers == list(range(1, 161)), "each has seen what the one before it wrote"


def test_hazard_08_eight_processes_are_served_evenly(
    notes: Database, crew: Crew, tmp_path: Path
) -> None:
    """The strict figure is the benchmark's: this machine may be busy with other tests."""
    ready = tmp_path / "ready"
    ready.mkdir()
    shares = crew.all(writing.write_until, *[(800, notes.path, ready, 8)] * 8)
    assert sum(shares) == 800
    assert min(shares) / max(shares) >= 0.5, shares


def test_hazard_09_the_log_shrinks_to_its_bound_after_a_long_read(
    notes: Database, doomed: Crew, tmp_path: Path
) -> None:
    bound, chunk = 2_000_000, b"x" * 500_000
    with notes.transaction() as connection:
        assert connection.execute("PRAGMA journal_size_limit").fetchone()[0] == 64 * 1024**2
        connection.execute("CREATE TABLE blobs(chunk BLOB) STRICT")
        connection.execute(f"PRAGMA journal_size_limit={bound}").fetchall()

    def write(times: int) -> None:
        for _ in range(times):
            with notes.transaction() as connection:
                connection.execute("INSERT INTO blobs VALUES(?)", (chunk,))

    begun, release = tmp_path / "begun", tmp_path / "release"
    doomed.start(0, writing.read_for_long, notes.path, begun, release)
    wait_until(begun.exists)
    write(30)
    assert notes.wal_bytes() > 15_000_000, "the read holds back the checkpoint"
    release.touch()
    doomed.answer(0)
    # One commit checkpoints, the next one begins the log anew and cuts it.
    write(3)
    assert 0 < notes.wal_bytes() <= bound + 1_000_000


def test_hazard_09_without_a_long_read_the_log_stays_small(notes: Database) -> None:
    for _ in range(120):
        with notes.transaction() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS blobs(chunk BLOB) STRICT")
            connection.execute("INSERT INTO blobs VALUES(?)", (b"x" * 500_000,))
    assert notes.wal_bytes() < 20_000_000


def test_hazard_10_the_file_changes_only_under_the_lock(
    notes: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits go to the log; what changes the file itself is a checkpoint."""
    changes: list[bool] = []
    is_held = True
    changed_at = notes.path.stat().st_mtime_ns
    acquire, release = WriterLock.acquire, WriterLock.release

    def look() -> None:
        nonlocal changed_at
        if (found := notes.path.stat().st_mtime_ns) != changed_at:
            changes.append(is_held)
            changed_at = found

    def watched_acquire(lock: WriterLock, seconds: float) -> bool:
        nonlocal is_held
        got = acquire(lock, seconds)
        look()
        is_held = got
        return got

    def watched_release(lock: WriterLock) -> None:
        nonlocal is_held
        look()
        is_held = False
        release(lock)

    with notes.transaction():
        monkeypatch.setattr(WriterLock, "acquire", watched_acquire)
        monkeypatch.setattr(WriterLock, "release", watched_release)
    for _ in range(120):
        with notes.transaction() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS blobs(chunk BLOB) STRICT")
            connection.execute("INSERT INTO blobs VALUES(?)", (b"x" * 500_000,))
        assert count(notes) == 0
        look()
    notes.close()
    assert len(changes) >= 3 and all(changes)


def test_hazard_10_who_cannot_have_the_lock_closes_without_a_checkpoint(
    notes: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.db.QUIET_SECONDS", 0.1)
    note(notes, 1, 1)
    wal_bytes, changed_at = notes.wal_bytes(), notes.path.stat().st_mtime_ns
    lock = os.open(notes.path.with_name(notes.path.name + ".lock"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    notes.close()
    assert (notes.wal_bytes(), notes.path.stat().st_mtime_ns) == (wal_bytes, changed_at)
    os.close(lock)
    again = Database(notes.path)
    assert count(again) == 1
    again.close()


def test_hazard_13_a_forked_child_writes_on_a_lock_of_its_own(
    notes: Database, doomed: Crew
) -> None:
    child, rows = doomed.all(writing.fork_while_quiet, (notes.path,))[0]
    assert (child, rows) == (0, 3 + 10)


def test_hazard_13_a_child_forked_inside_a_transaction_is_refused(
    notes: Database, doomed: Crew
) -> None:
    refused, rows = doomed.all(writing.fork_inside, (notes.path,))[0]
    assert (refused, rows) == (2, 2)


def test_hazard_13_a_child_cannot_commit_what_its_parent_began(
    notes: Database, doomed: Crew
) -> None:
    child, rows = doomed.all(writing.leave_the_block_in_a_child, (notes.path,))[0]
    assert (child, rows) == (7, 1)


def test_hazard_13_a_child_does_not_keep_the_lock_of_its_killed_parent(
    notes: Database, doomed: Crew, tmp_path: Path
) -> None:
    ready, release = tmp_path / "ready", tmp_path / "release"
    doomed.start(0, writing.fork_beside_a_writer, notes.path, ready, release)
    wait_until(lambda: ready.exists() and ready.read_text() != "", what="the child was refused")
    try:
        with pytest.raises(AppError):
            impatient_note(notes.path)
        doomed.kill(0)
        note(notes, 1, 1)
        assert count(notes) == 1
        os.kill(int(ready.read_text()), 0)
    finally:
        release.touch()


def test_hazard_13_a_child_that_outlives_its_parent_keeps_what_it_writes(
    notes: Database, doomed: Crew, tmp_path: Path
) -> None:
    """A child that took its parent's locks for its own would write to a log that is deleted."""
    begun, release = tmp_path / "begun", tmp_path / "release"
    notes.close()
    child = doomed.all(writing.outlive_the_parent, (notes.path, begun, release))[0]
    doomed.start(1, writing.open_and_close, notes.path)
    doomed.answer(1)
    release.touch()
    doomed.start(0, writing.reap, child)
    assert doomed.answer(0) == 0
    again = Database(notes.path)
    assert count(again) == 3
    again.close()


def test_hazard_14_nothing_of_ours_opens_the_database_past_sqlite(
    data_dir: Path, doomed: Crew
) -> None:
    (opened,) = doomed.all(writing.opened_files, (data_dir,))
    assert set(opened) == {"pisar.db.lock"}


def test_hazard_16_rows_left_unread_fail_the_commit_and_nothing_after_it(notes: Database) -> None:
    for number in range(3):
        note(notes, 1, number)
    with (
        pytest.raises(sqlite3.OperationalError, match="progress"),
        notes.transaction() as connection,
    ):
        half = connection.execute("UPDATE notes SET who = 2 RETURNING number")
        half.fetchone()
    with notes.read() as connection:
        assert connection.execute("SELECT DISTINCT who FROM notes").fetchall()[0][0] == 1
    note(notes, 3, 1)
    assert count(notes) == 4


def test_hazard_18_a_stopped_writer_hangs_nobody(
    notes: Database, doomed: Crew, tmp_path: Path
) -> None:
    inside = tmp_path / "inside"
    doomed.start(0, chores.stay_inside, notes.path, inside)
    wait_until(inside.exists)
    doomed.signal(0, signal.SIGSTOP)
    started = time.monotonic()
    with pytest.raises(AppError) as busy:
        impatient_note(notes.path)
    assert busy.value.code == "store_busy" and "stopped" in busy.value.detail
    assert not notes.is_writable(0.1)
    assert time.monotonic() - started < 5
    assert count(notes) == 0, "reading goes on"
    doomed.kill(0)
    note(notes, 1, 1)
    assert notes.is_writable(5) and count(notes) == 1


def test_hazard_27_no_step_starts_on_a_claim_that_was_not_committed(
    data_dir: Path, doomed: Crew
) -> None:
    said, attempts = doomed.all(writing.claim_on_a_full_disk, (data_dir,))[0]
    assert said == "OperationalError"
    assert attempts == 1, "the claim that failed counts nothing"


def test_hazard_27_when_a_shared_commit_fails_no_thread_is_told_success(
    notes: Database, doomed: Crew
) -> None:
    told_well, rows = doomed.all(writing.commit_together_on_a_full_disk, (notes.path, 4))[0]
    assert (told_well, rows) == (0, 0)
