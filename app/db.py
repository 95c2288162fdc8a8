"""The SQLite file: connections with their pragmas, and one writer at a time.

A write goes through transaction(): a lock file between processes, then BEGIN IMMEDIATE (S30).
SQLite's own busy handler starves: with eight writing processes the least served one got about a
thousandth of what the most served got; behind the lock file they share evenly. The lock also
keeps a commit of one process and a checkpoint of another apart, which takes the trigger from the
WAL-reset defect of SQLite before 3.51.3.
"""

import fcntl
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.errors import AppError

Connection = sqlite3.Connection
Cursor = sqlite3.Cursor
complete_statement = sqlite3.complete_statement
Row = sqlite3.Row
IntegrityError = sqlite3.IntegrityError

BUSY_SECONDS = 60.0
"""A last resort behind the lock file: a foreign program may hold SQLite's own lock for a while."""

_PRAGMAS = (
    # First: SQLite does not wait for other processes in the switch of a fresh file to WAL, so
    # Database makes its first connection under the lock; with later ones this changes nothing.
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "journal_size_limit=67108864",
    "cache_size=-32000",
    "trusted_schema=OFF",
)
_STATEMENT_NAME = re.compile(r"^-- name: ([a-z_]+)[^\n]*\n", re.MULTILINE)


class Database:
    """One SQLite file; each thread gets a connection of its own, opened when first used.

    Never open, copy or checksum the file itself while this process has it open: closing any
    descriptor of it drops all of the process's SQLite locks.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._guard = threading.Lock()
        self._opened: list[tuple[threading.Thread, Connection]] = []
        self._writer = threading.Lock()
        self._pid = os.getpid()
        self._is_closed = False
        self._lock_fd = os.open(
            path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            with _told_apart(), self._alone():
                self._connection()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for reading outside a transaction: each statement sees what is committed.

        Read each result to its end: a cursor kept half-read holds its moment, and this thread's
        next transaction() would fail with "database is locked" once another process has written.
        """
        with _told_apart():
            yield self._connection()

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection whose reads all see one moment; keep it short, it holds back checkpoints."""
        with _told_apart():
            connection = self._connection()
            connection.execute("BEGIN DEFERRED")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A write transaction, committed durably on leaving, undone when the block raises.

        Keep it short, and do no file or network work inside: every other writer waits.
        """
        with _told_apart():
            connection = self._connection()
            if connection.in_transaction:
                raise RuntimeError("a transaction inside a transaction would wait for itself")
            with self._alone():
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise

    def close(self) -> None:
        """Close every connection; harmless when done twice, and the other threads must be idle."""
        self._forbid_fork()
        if self._is_closed:
            return
        # The last connection of all processes checkpoints as it closes, so under the lock.
        with self._alone(), self._guard:
            self._is_closed = True
            for _, connection in self._opened:
                connection.close()
            self._opened.clear()
            self._local = threading.local()
        os.close(self._lock_fd)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The writer lock: between threads, since they share the descriptor, and processes."""
        with self._writer:
            if self._is_closed:
                raise RuntimeError("the database is closed")
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._lock_fd, fcntl.LOCK_UN)

    def _connection(self) -> Connection:
        self._forbid_fork()
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            with self._guard:
                if self._is_closed:
                    raise RuntimeError("the database is closed")
                connection = self._connect()
                self._close_orphans()
                self._opened.append((threading.current_thread(), connection))
            self._local.connection = connection
        return connection

    def _forbid_fork(self) -> None:
        # SQLite forbids carrying a connection over a fork, and an inherited lock descriptor
        # shares the parent's lock, so that both would write at once.
        if os.getpid() != self._pid:
            raise RuntimeError("a Database does not survive a fork: open a new one")

    def _close_orphans(self) -> None:
        """Close what ended threads left; never the last connection, so without the lock."""
        for thread, connection in self._opened:
            if not thread.is_alive():
                connection.close()
        self._opened = [pair for pair in self._opened if pair[0].is_alive()]

    def _connect(self) -> Connection:
        # check_same_thread is off only so that close() may close the other threads' connections.
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = Row
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
        return connection


def statements(path: Path) -> Mapping[str, str]:
    """The named statements of a .sql file; a line `-- name: word  what it gives` starts each."""
    parts = _STATEMENT_NAME.split(path.read_text(encoding="utf-8"))[1:]
    return dict(zip(parts[0::2], (text.strip() for text in parts[1::2]), strict=True))


@contextmanager
def _told_apart() -> Iterator[None]:
    """Turn SQLite's faults that have a meaning for a person into errors with a code."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise AppError("disk_full", "database") from error
        raise
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise AppError("database_damaged") from error
        raise
