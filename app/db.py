"""The SQLite file: connections with their pragmas, and one writer at a time.

A write goes through transaction(): the turn among this process's threads (app.writer), the lock
between processes (app.writer_lock), then BEGIN IMMEDIATE (S30). SQLite's own busy handler starves:
with eight writing processes the least served one got about a thousandth of what the most served
got; behind the lock they share evenly. Commits happen only under the lock, and so do checkpoints,
which are part of a COMMIT or of closing: that takes the trigger from the WAL-reset defect of
SQLite before 3.51.3.
"""

import ctypes
import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from app.errors import AppError
from app.writer import UndoneError, Writer
from app.writer_lock import WriterLock

Connection = sqlite3.Connection
Cursor = sqlite3.Cursor
complete_statement = sqlite3.complete_statement
Row = sqlite3.Row
IntegrityError = sqlite3.IntegrityError

WRITER_SECONDS = 10.0
"""How long a caller waits for its turn to write: longer than any crowd takes, not for ever."""

FOREIGN_SECONDS = 5.0
"""How long SQLite waits for a foreign program, which does not know our lock."""

QUIET_SECONDS = 2.0
"""How long a fork waits until the other threads are outside of the database."""

_PRAGMAS = (
    # First: SQLite does not wait for other processes in the switch of a fresh file to WAL, so
    # Database makes its first connection under the lock; with later ones this changes nothing.
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    # While a long read holds its moment the log grows; afterwards it is cut back to this.
    "journal_size_limit=67108864",
    # 16 MB of log for one checkpoint: the pages that every job touches go to the file, and the file
    # to the disk, a quarter as often as by default.
    "wal_autocheckpoint=4000",
    "cache_size=-32000",
    "trusted_schema=OFF",
)
_STATEMENT_NAME = re.compile(r"^-- name: ([a-z_]+)[^\n]*\n", re.MULTILINE)


class Database:
    """One SQLite file: a writing connection, and a reading one for each thread that reads.

    Never open, copy or checksum the file itself while this process has it open: closing any
    descriptor of it drops all of the process's SQLite locks. A forked child may use it as well;
    only when the fork met this process in the middle of something is that a RuntimeError.
    """

    def __init__(self, path: Path, writer_seconds: float = WRITER_SECONDS) -> None:
        self.path = path
        self._writer_seconds = writer_seconds
        self._handles = _Handles(path, writer_seconds)
        try:
            with self._handles.alone(writer_seconds):
                self._handles.writer.open()
        except BaseException as error:
            self._handles.close(0)
            _tell(error)
            raise
        _databases.add(self)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for reading outside a transaction: each statement sees what is committed.

        Inside a transaction() of the same thread it is that one's, and sees what it has written.
        Read each result to its end: a cursor kept half-read holds its moment, and the log of all
        that is written since then grows. It refuses to write.
        """
        handles = self._handles
        handles.enter()
        try:
            yield handles.writing() or handles.reader()
        except sqlite3.DatabaseError as error:
            _tell(error)
            raise
        finally:
            handles.leave()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A write transaction, committed durably on leaving, undone when the block raises.

        Keep it short, and do no file or network work inside: every other writer waits. Blocks of
        several threads may share one COMMIT. AppError store_busy when the turn does not come in
        time, disk_full or database_damaged: then nothing of the block is kept.
        """
        handles = self._handles
        handles.enter()
        try:
            if handles.writing():
                raise RuntimeError("a transaction inside a transaction would wait for itself")
            turn = handles.writer.enter()
            handles.local.writing = handles.writer.connection
            try:
                yield handles.local.writing
            except BaseException as error:
                self._stay_in_the_parent(handles)
                handles.local.writing = None
                handles.writer.undo(turn, error)
                raise
            self._stay_in_the_parent(handles)
            handles.local.writing = None
            handles.writer.leave(turn)
        except (sqlite3.DatabaseError, UndoneError) as error:
            _tell(error)
            raise
        finally:
            handles.leave()

    def is_writable(self, seconds: float) -> bool:
        """Whether a turn to write comes within so many seconds."""
        handles = self._handles
        handles.enter()
        try:
            with handles.alone(seconds):
                return True
        except AppError:
            return False
        finally:
            handles.leave()

    def wal_bytes(self) -> int:
        """How long the log is: some MB, and more while a long read holds back its checkpoint."""
        with suppress(FileNotFoundError):
            return self.path.with_name(self.path.name + "-wal").stat().st_size
        return 0

    def close(self) -> None:
        """Close every connection; harmless when done twice, and the other threads must be idle."""
        _databases.discard(self)
        self._handles.close(self._writer_seconds)

    def _stay_in_the_parent(self, handles: "_Handles") -> None:
        if handles is not self._handles:
            raise RuntimeError("a transaction stays with the process that began it")

    def before_fork(self) -> None:
        """Called by every fork."""
        self._handles.hush()

    def after_fork_in_parent(self) -> None:
        """Called by every fork."""
        self._handles.resume()

    def after_fork_in_child(self) -> None:
        """Called by every fork."""
        inherited = self._handles
        inherited.drop()
        self._handles = _Handles(self.path, self._writer_seconds)
        if not inherited.is_quiet:
            self._handles.fault = (
                "it was in use while this process was forked: open it anew by exec"
            )


_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()


class _Handles:
    """What one process has open on the file; a forked child begins with new ones."""

    def __init__(self, path: Path, writer_seconds: float) -> None:
        self.path = path
        self.fault = ""
        self.is_quiet = True
        self.local = threading.local()
        self._mine = threading.local()
        self.lock = WriterLock(path.with_name(path.name + ".lock"))
        self.writer = Writer(self.lock, writer_seconds, lambda: _connect(path))
        self._readers: list[tuple[threading.Thread, Connection]] = []
        self._renew_guard()

    def enter(self) -> None:
        """Count this thread in; while a fork is under way, only one that is inside already."""
        depth = getattr(self.local, "depth", 0)
        with self._guard:
            while self._is_hushed and not depth:
                self._quiet.wait()
            if self.fault:
                raise RuntimeError(self.fault)
            self._inside_count += 1
        self.local.depth = depth + 1

    def leave(self) -> None:
        """Count this thread out."""
        self.local.depth -= 1
        with self._guard:
            self._inside_count -= 1
            if self._is_hushed:
                self._quiet.notify_all()

    def writing(self) -> Connection | None:
        """The writing connection while this thread is in a transaction."""
        connection: Connection | None = getattr(self.local, "writing", None)
        return connection

    def reader(self) -> Connection:
        """This thread's connection for reading."""
        connection: Connection | None = getattr(self._mine, "reader", None)
        if connection is None:
            connection = _connect(self.path)
            connection.execute("PRAGMA query_only=ON")
            with self._guard:
                self._close_orphans()
                self._readers.append((threading.current_thread(), connection))
            self._mine.reader = connection
        return connection

    @contextmanager
    def alone(self, seconds: float) -> Iterator[None]:
        """The turn and the lock without a transaction; AppError store_busy beyond the deadline."""
        until = monotonic() + seconds
        with self.writer.alone(seconds):
            if not self.lock.acquire(until - monotonic()):
                raise AppError("store_busy", self.lock.holder())
            try:
                yield
            finally:
                self.lock.release()

    def close(self, seconds: float) -> None:
        """Close everything under the lock, since the last connection checkpoints.

        When the lock does not come, the end of the process closes it: without a checkpoint.
        """
        if self.fault:
            return
        with self.writer.alone(seconds):
            has_lock = self.lock.acquire(min(seconds, QUIET_SECONDS))
            self.fault = "the database is closed"
            if has_lock:
                self._close_connections()
                self.lock.release()
            else:
                self._never_close()
            self.lock.close()

    def hush(self) -> None:
        """Before a fork: close everything, so that the child finds SQLite as if just loaded.

        SQLite keeps its book of locks in the process. A child that inherits entries takes the
        parent's locks for its own, and then its log may be deleted while it writes there.
        """
        self.is_quiet = False
        if getattr(self.local, "depth", 0):
            return
        until = monotonic() + QUIET_SECONDS
        with self._guard:
            self._is_hushed = True
            if not self._quiet.wait_for(lambda: self._inside_count == 0, QUIET_SECONDS):
                return
        if self.lock.acquire(until - monotonic()):
            self._close_connections()
            self.lock.release()
            self.is_quiet = True

    def resume(self) -> None:
        """After the fork, in the parent: all may go on."""
        with self._guard:
            self._is_hushed = False
            self._quiet.notify_all()

    def drop(self) -> None:
        """In the child: nothing of the parent's is used, and no connection of it is closed."""
        self._renew_guard()
        self.lock.drop_inherited()
        if not self.is_quiet:
            self._never_close()

    def _never_close(self) -> None:
        # Not even by the end of the interpreter: SQLite would write to the file.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def _renew_guard(self) -> None:
        self._guard = threading.Lock()
        self._quiet = threading.Condition(self._guard)
        self._inside_count = 0
        self._is_hushed = False

    def _close_orphans(self) -> None:
        """Close what ended threads left; never the last connection, so without the lock."""
        for thread, connection in self._readers:
            if not thread.is_alive():
                connection.close()
        self._readers = [pair for pair in self._readers if pair[0].is_alive()]

    def _close_connections(self) -> None:
        with self._guard:
            for _, connection in self._readers:
                connection.close()
            self._readers.clear()
            self._mine = threading.local()
        self.writer.close()


def statements(path: Path) -> Mapping[str, str]:
    """The named statements of a .sql file; a line `-- name: word  what it gives` starts each."""
    parts = _STATEMENT_NAME.split(path.read_text(encoding="utf-8"))[1:]
    return dict(zip(parts[0::2], (text.strip() for text in parts[1::2]), strict=True))


def _connect(path: Path) -> Connection:
    # check_same_thread is off: threads take turns at the writing connection, and close() closes
    # the reading ones of them all.
    connection = sqlite3.connect(
        path, timeout=FOREIGN_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = Row
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _tell(error: BaseException) -> None:
    """Raise in its place, if it has a meaning for a person, an error with a code."""
    cause = error.__cause__ if isinstance(error, UndoneError) else error
    code = getattr(cause, "sqlite_errorcode", 0)
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            raise AppError("disk_full", "database") from error
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            raise AppError("database_damaged") from error
        # Only a foreign program can still be in the way. The same code means other faults too.
        case sqlite3.SQLITE_BUSY if "locked" in str(cause) and code != sqlite3.SQLITE_BUSY_SNAPSHOT:
            raise AppError("store_busy", "a foreign program writes to the database") from error


_forking = threading.Lock()


def _before_fork() -> None:
    _forking.acquire()
    for database in list(_databases):
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in list(_databases):
        database.after_fork_in_parent()
    _forking.release()


def _after_fork_in_child() -> None:
    for database in list(_databases):
        database.after_fork_in_child()
    _forking.release()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
