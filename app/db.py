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

BUSY_SECONDS = 10.0
"""A last resort behind the lock file: a foreign program may hold SQLite's own lock."""

_PRAGMAS = (
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
        self._opened: list[Connection] = []
        self._writer = threading.Lock()
        self._lock_path = path.with_name(path.name + ".lock")
        self._lock_fd = self._open_lock()
        self._pid = os.getpid()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for reading outside a transaction: each statement sees what is committed."""
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
                connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A write transaction, committed durably on leaving, undone when the block raises.

        Keep it short, and do no file or network work inside: every other writer waits.
        """
        with _told_apart(), self._writer:
            connection = self._connection()
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            finally:
                fcntl.flock(self._lock_fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close every connection; the last one of all processes checkpoints, so under the lock."""
        with self._writer, self._guard:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
            try:
                for connection in self._opened:
                    connection.close()
                self._opened.clear()
                self._local = threading.local()
            finally:
                os.close(self._lock_fd)

    def _connection(self) -> Connection:
        if os.getpid() != self._pid:
            # SQLite forbids carrying a connection over a fork, and an inherited lock descriptor
            # shares the parent's lock, so that both would write at once.
            raise RuntimeError("a Database does not survive a fork: open a new one")
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            self._local.connection = connection
            with self._guard:
                self._opened.append(connection)
        return connection

    def _connect(self) -> Connection:
        # check_same_thread is off only so that close() may close the other threads' connections.
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = Row
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
        return connection

    def _open_lock(self) -> int:
        return os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


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
