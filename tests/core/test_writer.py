"""One writer at a time: the turns of threads, the commit they share, and what a group is told."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import app.writer
from app.db import Database, UndoneError
from app.errors import AppError
from tests.core import writing
from tests.core.writing import count, in_line, note
from tests.crew import Crew
from tests.processes import wait_until


@pytest.fixture
def notes(database: Database) -> Database:
    with database.transaction() as connection:
        connection.execute("CREATE TABLE notes(who INTEGER, number INTEGER) STRICT")
    return database


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group here may take as long as it takes its threads to gather."""
    monkeypatch.setattr(app.writer, "GROUP_SECONDS", 60.0)


@contextmanager
def crowd(database: Database, statements: list[str]) -> Iterator[ThreadPoolExecutor]:
    """A pool whose tasks stand in line behind a transaction that ends when the block does.

    statements receives what the writing connection runs.
    """
    with ThreadPoolExecutor(16) as pool, database.transaction() as connection:
        connection.set_trace_callback(statements.append)
        connection.execute("INSERT INTO notes VALUES(0, 0)")
        yield pool


def stand(database: Database, pool: ThreadPoolExecutor, *tasks: object) -> list[Future[object]]:
    """Start tasks, each once the one before it stands in line."""
    started = []
    for task in tasks:
        length = in_line(database)
        started.append(pool.submit(task))  # type: ignore[arg-type]
        wait_until(lambda length=length: in_line(database) > length, what="it stands in line")
    return started


def rows(path: Path) -> list[int]:
    """Who has written, in order, as another connection sees it."""
    raw = sqlite3.connect(path)
    try:
        return [row[0] for row in raw.execute("SELECT who FROM notes ORDER BY rowid")]
    finally:
        raw.close()


def commits(statements: list[str]) -> int:
    return statements.count("COMMIT")


def test_s30_threads_that_wait_share_one_commit_in_the_order_they_came(notes: Database) -> None:
    seen: list[list[int]] = []

    def work(who: int) -> None:
        note(notes, who, 1)
        # Whoever returns finds the work of its whole group committed.
        seen.append(rows(notes.path))

    statements: list[str] = []
    with crowd(notes, statements) as pool:
        started = stand(notes, pool, *(lambda who=who: work(who) for who in range(1, 6)))
        assert rows(notes.path) == []
    for one in started:
        one.result(timeout=5)
    assert commits(statements) == 1
    assert seen == [[0, 1, 2, 3, 4, 5]] * 5


def test_s30_a_lone_writer_pays_for_no_group(notes: Database) -> None:
    statements: list[str] = []
    with notes.transaction() as connection:
        connection.set_trace_callback(statements.append)
    note(notes, 1, 1)
    assert statements == ["COMMIT", "BEGIN IMMEDIATE", "INSERT INTO notes VALUES(1, 1)", "COMMIT"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_s30_a_block_that_raises_is_undone_alone(
    notes: Database, error: type[BaseException]
) -> None:
    def fail() -> None:
        with notes.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES(13, 1)")
            raise error

    statements: list[str] = []
    with crowd(notes, statements) as pool:
        first, bad, last, worse = stand(
            notes, pool, lambda: note(notes, 1, 1), fail, lambda: note(notes, 2, 1), fail
        )
    for failed in (bad, worse):
        with pytest.raises(error):
            failed.result(timeout=5)
    first.result(timeout=5)
    last.result(timeout=5)
    assert commits(statements) == 1
    assert rows(notes.path) == [0, 1, 2]


def test_s30_when_the_first_block_raises_the_others_go_on(notes: Database) -> None:
    started = []
    with pytest.raises(ValueError, match="first"), crowd(notes, []) as pool:
        started = stand(notes, pool, *(lambda who=who: note(notes, who, 1) for who in (1, 2)))
        raise ValueError("first")
    for one in started:
        one.result(timeout=5)
    assert rows(notes.path) == [1, 2]


def test_s30_when_the_commit_fails_nobody_is_told_success(notes: Database) -> None:
    with notes.transaction() as connection:
        connection.execute(
            "CREATE TABLE orphans(who INTEGER REFERENCES parents(who)"
            " DEFERRABLE INITIALLY DEFERRED) STRICT"
        )
        connection.execute("CREATE TABLE parents(who INTEGER PRIMARY KEY) STRICT")

    def adopt() -> None:
        with notes.transaction() as connection:
            connection.execute("INSERT INTO orphans VALUES(1)")

    started = []
    with pytest.raises(UndoneError), crowd(notes, []) as pool:
        started = stand(notes, pool, lambda: note(notes, 1, 1), adopt, lambda: note(notes, 2, 1))
    told = [one.exception(timeout=5) for one in started]
    assert [type(error) for error in told] == [UndoneError, UndoneError, sqlite3.IntegrityError]
    assert rows(notes.path) == []
    note(notes, 3, 1)
    assert rows(notes.path) == [3]


def test_s30_when_sqlite_undoes_the_whole_transaction_all_are_told(notes: Database) -> None:
    def be_undone() -> None:
        with notes.transaction() as connection:
            # As SQLite does by itself on a full disk or a fault of it.
            connection.execute("ROLLBACK")
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    started = []
    with pytest.raises(AppError), crowd(notes, []) as pool:
        started = stand(
            notes, pool, lambda: note(notes, 1, 1), be_undone, lambda: note(notes, 2, 1)
        )
    first, bad, later = (one.exception(timeout=5) for one in started)
    assert isinstance(first, AppError) and isinstance(bad, AppError)
    assert (first.code, bad.code, later) == ("disk_full", "disk_full", None)
    assert rows(notes.path) == [2]


def test_s30_a_block_that_goes_on_after_it_was_undone_does_not_count_as_done(
    notes: Database,
) -> None:
    def go_on() -> None:
        with notes.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES(1, 1)")
            connection.execute("ROLLBACK")

    with pytest.raises(sqlite3.OperationalError, match="no transaction"):
        go_on()
    started = []
    with pytest.raises(UndoneError), crowd(notes, []) as pool:
        started = stand(notes, pool, go_on)
    assert started[0].exception(timeout=5) is not None
    assert rows(notes.path) == []


def test_s30_a_first_block_that_was_undone_hands_nothing_on(notes: Database) -> None:
    started = []
    with (
        pytest.raises(sqlite3.OperationalError, match="no transaction"),
        crowd(notes, []) as pool,
        notes.read() as connection,
    ):
        connection.execute("ROLLBACK")
        started = stand(notes, pool, lambda: note(notes, 1, 1))
    started[0].result(timeout=5)
    assert rows(notes.path) == [1]


@pytest.mark.parametrize(("blocks", "seconds"), [(2, 60.0), (64, -1.0)])
def test_s30_a_group_ends_by_number_and_by_time(
    notes: Database, monkeypatch: pytest.MonkeyPatch, blocks: int, seconds: float
) -> None:
    monkeypatch.setattr(app.writer, "GROUP_BLOCKS", blocks)
    monkeypatch.setattr(app.writer, "GROUP_SECONDS", seconds)
    statements: list[str] = []
    with crowd(notes, statements) as pool:
        started = stand(notes, pool, *(lambda who=who: note(notes, who, 1) for who in range(1, 6)))
    for one in started:
        one.result(timeout=5)
    # Two that wait and the one that commits make three.
    assert commits(statements) == (2 if blocks == 2 else 6)
    assert rows(notes.path) == [0, 1, 2, 3, 4, 5]


def test_s30_a_thread_waits_no_longer_than_its_deadline(notes: Database) -> None:
    impatient = Database(notes.path, 0.2)
    with impatient.transaction() as connection, ThreadPoolExecutor(2) as pool:
        connection.execute("INSERT INTO notes VALUES(0, 0)")
        busy = [pool.submit(note, impatient, who, 1).exception(timeout=5) for who in (1, 2)]
        assert in_line(impatient) == 0
    assert [error.code for error in busy if isinstance(error, AppError)] == ["store_busy"] * 2
    note(impatient, 3, 1)
    assert rows(notes.path) == [0, 3]
    impatient.close()


def test_s30_ctrl_c_in_the_line_leaves_the_line_whole(notes: Database, crew: Crew) -> None:
    said, written = crew.all(writing.interrupted_in_line, (notes.path,))[0]
    assert (said, written) == ("interrupted", 1)


def test_s30_who_stands_in_line_when_it_is_closed_is_told_so(notes: Database) -> None:
    with crowd(notes, []) as pool:
        before, closing, after = stand(
            notes, pool, lambda: note(notes, 1, 1), notes.close, lambda: note(notes, 2, 1)
        )
    before.result(timeout=5)
    closing.result(timeout=5)
    with pytest.raises(RuntimeError, match="closed"):
        after.result(timeout=5)
    assert rows(notes.path) == [0, 1]


def test_a_read_inside_a_transaction_sees_what_it_has_written(notes: Database) -> None:
    with notes.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES(1, 1)")
        assert count(notes) == 1
        assert rows(notes.path) == []


def test_s30_what_reads_cannot_write_past_the_lock(notes: Database) -> None:
    with notes.read() as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("INSERT INTO notes VALUES(1, 1)")


def test_a_result_that_a_block_left_half_read_keeps_nobody_from_writing(notes: Database) -> None:
    for number in range(3):
        note(notes, 1, number)
    with notes.transaction() as connection:
        half = connection.execute("SELECT number FROM notes")
        half.fetchone()
    other = Database(notes.path)
    note(other, 2, 1)
    other.close()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(note, notes, 3, 1).result(timeout=5)
    assert rows(notes.path) == [1, 1, 1, 2, 3]
    del half


def test_a_foreign_program_that_does_not_let_go_is_told_apart(
    notes: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.db.FOREIGN_SECONDS", 0.1)
    database = Database(notes.path)
    foreign = sqlite3.connect(notes.path, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    with pytest.raises(AppError) as busy:
        note(database, 1, 1)
    assert busy.value.code == "store_busy" and "foreign" in busy.value.detail
    foreign.close()
    note(database, 1, 2)
    database.close()


def test_connections_are_opened_for_readers_and_one_writer_only(notes: Database) -> None:
    barrier = threading.Barrier(4)

    def work(who: int) -> None:
        barrier.wait(5)
        note(notes, who, 1)

    before = {connection_ids(notes)}
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert {connection_ids(notes)} == before


def connection_ids(database: Database) -> int:
    with database.transaction() as connection:
        return id(connection)
