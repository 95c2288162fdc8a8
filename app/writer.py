"""The turns of one process's threads at its one writing connection, and what they share: a commit.

Threads write in the order in which they came. When a block has ended and others wait, the open
transaction is handed on, and the last one commits for all: one sync of the disk instead of one
each. Every block but the first runs in a SAVEPOINT, so that one that raises is undone alone.
Nobody returns before the COMMIT, and when it fails everyone of the group is told.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from app.errors import AppError
from app.writer_lock import WriterLock

# The other processes wait while a group grows: it ends after so many blocks, or with the first
# one that ends later than this.
GROUP_BLOCKS = 64
GROUP_SECONDS = 0.01


class Writing(Protocol):
    """What is asked of the writing connection."""

    @property
    def in_transaction(self) -> bool:
        """False again once SQLite has undone the whole transaction by itself."""

    def execute(self, sql: str, /) -> Any:
        """Run one statement."""

    def close(self) -> None:
        """Close the connection."""


C = TypeVar("C", bound=Writing)


class UndoneError(Exception):
    """A block that ended well was undone with its group; __cause__ is what undid them all."""


class Turn:
    """One thread's time with the connection, and its share in the commit."""

    __slots__ = ("bell", "can_join", "error", "has_come", "is_joined")

    def __init__(self, *, can_join: bool) -> None:
        self.can_join = can_join
        # Rung when the turn comes and, for one that was handed on, when the commit is decided.
        self.bell: threading.Lock | None = None
        self.has_come = False
        self.is_joined = False
        self.error: BaseException | None = None


class Writer(Generic[C]):
    """Begins, hands on and ends the transactions of a process.

    seconds bounds the wait for one's turn, and connect opens the writing connection.
    """

    def __init__(self, lock: WriterLock, seconds: float, connect: Callable[[], C]) -> None:
        self._lock = lock
        self._seconds = seconds
        self._connect = connect
        self._connection: C | None = None
        self._guard = threading.Lock()
        self._line: deque[Turn] = deque()
        self._is_taken = False
        self._group: list[Turn] = []
        self._begun_at = 0.0

    @property
    def connection(self) -> C:
        """The writing connection; only for the thread whose turn it is."""
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def open(self) -> None:
        """Open the writing connection before it is needed."""
        self._connection = self._connect()

    def enter(self) -> Turn:
        """Wait for the turn and an open transaction; AppError store_busy when they do not come."""
        until = monotonic() + self._seconds
        turn = self._take(until, can_join=True)
        if not turn.is_joined:
            self._begin(until)
        return turn

    def leave(self, turn: Turn) -> None:
        """The block has ended well: returns when its work is committed durably, else raises."""
        if turn.is_joined:
            try:
                self.connection.execute("RELEASE block")
            except BaseException as error:
                self.undo(turn, error)
                raise
        if not self._hand_on(turn):
            self._commit()
            return
        # Without a deadline: work that may yet be committed must not be called lost.
        _bell(turn).acquire()
        if turn.error is not None:
            raise UndoneError from turn.error

    def undo(self, turn: Turn, error: BaseException) -> None:
        """The block has raised: its own work is undone, and that of its group goes on."""
        if not (turn.is_joined and self.connection.in_transaction):
            self._end(error)
            return
        try:
            self.connection.execute("ROLLBACK TO block")
            self.connection.execute("RELEASE block")
        except BaseException as worse:
            self._end(worse, is_broken=True)
            return
        if not self._hand_on(None):
            # Should it fail, the members of the group are told; this one has its own error.
            with suppress(Exception):
                self._commit()

    @contextmanager
    def alone(self, seconds: float) -> Iterator[None]:
        """The turn without lock or transaction; AppError store_busy when it does not come."""
        self._take(monotonic() + seconds, can_join=False)
        try:
            yield
        finally:
            self._pass_on()

    def close(self) -> None:
        """Close the writing connection; only under the lock, as it may checkpoint."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _take(self, until: float, *, can_join: bool) -> Turn:
        turn = Turn(can_join=can_join)
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return turn
            bell = _bell(turn)
            self._line.append(turn)
        try:
            bell.acquire(timeout=max(0.0, until - monotonic()))
        except BaseException as error:
            self._give_up(turn, error)
            raise
        with self._guard:
            if not turn.has_come:
                self._line.remove(turn)
                raise AppError("store_busy", self._lock.holder())
            # It may have come just after the wait was over.
            bell.acquire(blocking=False)
        return turn

    def _give_up(self, turn: Turn, error: BaseException) -> None:
        with self._guard:
            if not turn.has_come:
                self._line.remove(turn)
                return
        if turn.is_joined:
            self.undo(turn, error)
        else:
            self._pass_on()

    def _begin(self, until: float) -> None:
        try:
            if not self._lock.acquire(until - monotonic()):
                raise AppError("store_busy", self._lock.holder())
            try:
                self._open_transaction()
            except BaseException:
                self._lock.release()
                raise
        except BaseException:
            self._pass_on()
            raise
        self._begun_at = monotonic()

    def _open_transaction(self) -> None:
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except Exception:
            # A cursor that a block left half-read holds the connection at its moment, and then no
            # transaction can begin on it ever again.
            self.close()
            self.connection.execute("BEGIN IMMEDIATE")

    def _hand_on(self, turn: Turn | None) -> bool:
        """Give the open transaction to the next in line; False when it is to be committed now.

        turn is the one that then waits for the commit; None when it has nothing in it.
        """
        if not self._line or len(self._group) >= GROUP_BLOCKS:
            return False
        if monotonic() - self._begun_at > GROUP_SECONDS:
            return False
        with self._guard:
            if not (self._line and self._line[0].can_join and self.connection.in_transaction):
                return False
            try:
                self.connection.execute("SAVEPOINT block")
            except Exception:
                # A statement of this block is half-done: COMMIT will say so to the one it concerns.
                return False
            if turn is not None:
                _bell(turn)
                self._group.append(turn)
            following = self._line.popleft()
            following.is_joined = True
            _call(following)
        return True

    def _commit(self) -> None:
        try:
            self.connection.execute("COMMIT")
        except BaseException as error:
            if isinstance(error, Exception) or self.connection.in_transaction:
                self._end(error, is_broken=True)
            else:
                # Interrupted by a signal after it was done.
                self._end(None)
            raise
        self._end(None)

    def _end(self, error: BaseException | None, *, is_broken: bool = False) -> None:
        """The transaction is over: let the next one in, then tell the group how it went.

        A connection that failed to commit is not used again: a statement left half-done in it
        would fail the next transactions too.
        """
        try:
            if error is not None and self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            if is_broken:
                self.close()
        finally:
            group, self._group = self._group, []
            self._lock.release()
            self._pass_on()
            for member in group:
                member.error = error
                _bell(member).release()

    def _pass_on(self) -> None:
        with self._guard:
            if self._line:
                _call(self._line.popleft())
            else:
                self._is_taken = False


def _bell(turn: Turn) -> threading.Lock:
    """The turn's bell: a lock that is held, so that whoever acquires it waits for a release."""
    if turn.bell is None:
        turn.bell = threading.Lock()
        turn.bell.acquire()
    return turn.bell


def _call(turn: Turn) -> None:
    turn.has_come = True
    _bell(turn).release()
