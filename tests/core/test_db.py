import fcntl
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.db import Database, statements
from app.errors import AppError
from tests import chores
from tests.crew import Crew
from tests.processes import wait_until


@pytest.fixture
def notes(database: Database) -> Database:
    with database.transaction() as connection:
        connection.execute("CREATE TABLE notes(who INTEGER, number INTEGER) STRICT")
    return database


def write(database: Database, who: int, number: int) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES(?, ?)", (who, number))


def count(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_s30_eight_processes_write_at_once_and_nothing_is_lost(notes: Database, crew: Crew) -> None:
    each = 25
    crew.all(chores.write_notes, *[(notes.path, who, each) for who in range(8)])
    with notes.read() as connection:
        found = connection.execute("SELECT who, number FROM notes").fetchall()
    assert len(found) == 8 * each
    assert {tuple(row) for row in found} == {(w, n) for w in range(8) for n in range(each)}


def test_s30_a_write_waits_for_the_lock_file_and_a_read_does_not(notes: Database) -> None:
    lock = os.open(notes.path.with_name(notes.path.name + ".lock"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(write, notes, 1, 1)
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            assert pool.submit(count, notes).result(timeout=5) == 0
        assert not writing.done()
        os.close(lock)
        writing.result(timeout=5)
    assert count(notes) == 1


def test_s30_a_transaction_holds_sqlites_own_lock_from_its_beginning(notes: Database) -> None:
    foreign = sqlite3.connect(notes.path, timeout=0, isolation_level=None)
    with notes.transaction(), pytest.raises(sqlite3.OperationalError, match="locked"):
        foreign.execute("BEGIN IMMEDIATE")
    foreign.execute("BEGIN IMMEDIATE")
    foreign.close()


def test_cq09_a_foreign_exclusive_lock_is_waited_out(
    notes: Database, crew: Crew, tmp_path: Path
) -> None:
    held, release = tmp_path / "held", tmp_path / "release"
    crew.start(7, chores.hold_exclusively, notes.path, held, release)
    try:
        wait_until(held.exists)
        for who in range(7):
            crew.start(who, chores.write_notes, notes.path, who, 3)
        seen = []
        wait_until(lambda: seen.append(count(notes)) or len(seen) > 50, what="reads beside it")
        assert set(seen) == {0}
    finally:
        release.touch()
    for member in range(8):
        crew.answer(member)
    assert count(notes) == 21


def test_a_transaction_is_undone_when_its_block_raises(notes: Database) -> None:
    for error in (ValueError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error), notes.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES(1, 1)")
            raise error
    assert count(notes) == 0
    write(notes, 1, 1)
    assert count(notes) == 1


def test_a_failing_statement_undoes_the_whole_transaction(notes: Database) -> None:
    with pytest.raises(sqlite3.IntegrityError), notes.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES(1, 1)")
        connection.execute("INSERT INTO notes VALUES('one', 1)")
    assert count(notes) == 0


def test_a_reader_sees_what_is_committed_and_does_not_wait_for_a_writer(notes: Database) -> None:
    write(notes, 1, 1)
    with notes.transaction() as connection, ThreadPoolExecutor(1) as pool:
        connection.execute("INSERT INTO notes VALUES(1, 2)")
        assert pool.submit(count, notes).result(timeout=5) == 1
    assert count(notes) == 2


def test_a_transaction_inside_another_is_refused_rather_than_waiting_for_itself(
    notes: Database,
) -> None:
    with notes.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES(1, 1)")
        with pytest.raises(RuntimeError, match="inside a transaction"):
            write(notes, 1, 2)
    assert count(notes) == 1


def test_threads_of_one_process_read_and_write_at_once(notes: Database) -> None:
    def work(who: int) -> None:
        for number in range(20):
            write(notes, who, number)
            assert count(notes) > number

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert count(notes) == 160


def test_the_connections_of_ended_threads_do_not_pile_up(notes: Database) -> None:
    before = open_files()
    for number in range(30):
        thread = threading.Thread(target=write, args=(notes, 1, number))
        thread.start()
        thread.join()
    assert open_files() - before <= 6
    assert count(notes) == 30


def test_p45_every_connection_commits_durably_and_keeps_the_references(notes: Database) -> None:
    def settings() -> list[object]:
        with notes.transaction() as connection:
            return [
                pragma(connection, name)
                for name in ("synchronous", "journal_mode", "foreign_keys", "trusted_schema")
            ]

    with ThreadPoolExecutor(1) as pool:
        assert settings() == pool.submit(settings).result() == [2, "wal", 1, 0]


def test_closing_closes_the_connections_of_idle_threads_too(data_dir: Path) -> None:
    data_dir.mkdir()
    before = open_files()
    database = Database(data_dir / "notes.db")
    with database.transaction() as connection:
        connection.execute("CREATE TABLE notes(who INTEGER, number INTEGER) STRICT")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda who: write(database, who, 1), range(20)))
        database.close()
        assert open_files() == before
        with pytest.raises(RuntimeError, match="closed"):
            pool.submit(count, database).result(timeout=5)
    for use in (database.read, database.transaction):
        with pytest.raises(RuntimeError, match="closed"), use():
            pass


def test_closing_twice_leaves_the_descriptors_of_others_alone(data_dir: Path) -> None:
    data_dir.mkdir()
    database = Database(data_dir / "notes.db")
    database.close()
    pipes = [os.pipe() for _ in range(4)]
    database.close()
    for reading, writing in pipes:
        os.write(writing, b"x")
        assert os.read(reading, 1) == b"x"
        os.close(reading)
        os.close(writing)


def test_closing_waits_for_the_writer(notes: Database) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with notes.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES(1, 1)")
            inside.set()
            leave.wait(20)

    with ThreadPoolExecutor(2) as pool:
        writer = pool.submit(hold)
        inside.wait(20)
        closing = pool.submit(notes.close)
        assert not closing.done()
        leave.set()
        writer.result(timeout=5)
        closing.result(timeout=5)
    again = Database(notes.path)
    assert count(again) == 1
    again.close()


def test_the_last_close_leaves_one_whole_file(data_dir: Path, notes: Database) -> None:
    write(notes, 1, 1)
    notes.close()
    assert not notes.path.with_name(notes.path.name + "-wal").exists()
    raw = sqlite3.connect(notes.path)
    assert raw.execute("SELECT count(*) FROM notes").fetchone()[0] == 1
    raw.close()


def test_a_full_disk_is_told_apart_and_undoes_the_transaction(notes: Database) -> None:
    write(notes, 1, 1)
    with notes.transaction() as connection:
        connection.execute(f"PRAGMA max_page_count={pragma(connection, 'page_count')}").fetchall()
    with pytest.raises(AppError) as full, notes.transaction() as connection:
        for number in range(20_000):
            connection.execute("INSERT INTO notes VALUES(2, ?)", (number,))
    assert full.value.code == "disk_full"
    assert str(notes.path) not in f"{full.value} {full.value.detail} {full.value.__cause__}"
    assert count(notes) == 1
    with notes.transaction() as connection:
        connection.execute("PRAGMA max_page_count=1000000").fetchall()
    write(notes, 1, 2)
    assert count(notes) == 2


def test_each_named_statement_of_a_file_is_found_once(tmp_path: Path) -> None:
    path = tmp_path / "some.sql"
    path.write_text(
        "-- a word before\n\n-- name: one  gives one\nSELECT 1\n\n-- name: two  gives two\n"
        "-- a word inside\nSELECT 2\n",
        encoding="utf-8",
    )
    assert statements(path) == {"one": "SELECT 1", "two": "-- a word inside\nSELECT 2"}
