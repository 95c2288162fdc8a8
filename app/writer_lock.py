"""The lock between processes: first come, first served, with a deadline for whoever waits.

The lock is a flock, which the kernel drops when its holder dies. On one that is released the
kernel wakes all who wait, in no order, and the one who released it is often back before them. So
they stand in a line: each holds a numbered place, a lock on one byte of the same file, and waits
until the place before its own is free; only the first waits for the flock, and nobody enters at
once while someone stands in line. A death in the line frees a place too early. That costs order,
never exclusion, which is the flock's alone.

None of these locks knows a deadline. So what is not free at once is waited for by a thread of its
own, the keeper, which hands it over; when by then nobody wants it any more, the keeper lets go of
it at once. A process that is stopped while it holds the lock therefore hangs nobody.
"""

import fcntl
import os
import struct
import threading
from contextlib import suppress
from pathlib import Path

_NUMBER = struct.Struct("q")
# Byte 0 is locked while the file's content, the last number that was given out, is changed.
_COUNTER = 0
_LAST_PLACE = 2**62
# struct flock of fcntl(2): type, whence, start, length (0: to the end), pid. These locks belong to
# the open file, not to the process as plain POSIX locks do.
_FLOCK = struct.Struct("hhqqi0q")
_ANY_PLACE = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _COUNTER, 0, 0)


class WriterLock:
    """The lock on one file, made when first used; one thread at a time may call acquire()."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._guard = threading.Lock()
        self._keeper: threading.Thread | None = None
        # What passes between the caller and the keeper: a request, and the lock that has come.
        self._asked = _shut()
        self._came = _shut()
        self._is_asked = False
        self._is_wanted = False
        self._is_here = False
        self._is_closed = False

    def acquire(self, seconds: float) -> bool:
        """Whether the lock came within so many seconds; True must be followed by release()."""
        with self._guard:
            if not self._is_asked:
                if self._enter_at_once():
                    return True
                self._ask()
            self._is_wanted = True
        try:
            self._came.acquire(timeout=max(0.0, seconds))
        except BaseException:
            if self._is_here_for_us():
                self.release()
            raise
        return self._is_here_for_us()

    def release(self) -> None:
        """Let the next one in."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def holder(self) -> str:
        """Who holds the lock, in words for the owner; empty when the kernel does not tell."""
        with suppress(OSError, ValueError, IndexError):
            found = self._path.stat()
            device, inode = found.st_dev, found.st_ino
            file = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
            for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
                fields = line.split()
                if fields[1] == "FLOCK" and fields[5] == file:
                    return f"process {fields[4]}{_state(fields[4])} holds the writer lock"
        return ""

    def close(self) -> None:
        """Close the file; a keeper that still waits closes it when its wait ends."""
        with self._guard:
            self._is_closed = True
            keeper, is_idle = self._keeper, not self._is_asked
            if keeper is None:
                self._close_file()
            elif is_idle:
                self._asked.release()
        if keeper is not None and is_idle:
            keeper.join()

    def drop_inherited(self) -> None:
        """Close what a forked child got from its parent; the parent keeps the lock it may hold.

        Kept open here, they would hold the parent's lock beyond the parent's death.
        """
        self._close_file()

    def _enter_at_once(self) -> bool:
        if self._is_closed:
            raise RuntimeError("the database is closed")
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if self._is_a_line():
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _ask(self) -> None:
        if self._keeper is None:
            keeper = threading.Thread(target=self._keep, name="writer-lock", daemon=True)
            keeper.start()
            self._keeper = keeper
        self._is_asked = True
        self._asked.release()

    def _is_here_for_us(self) -> bool:
        """If not, the request keeps its place in line, and the next caller takes it up."""
        with self._guard:
            self._is_wanted = False
            is_here, self._is_here = self._is_here, False
            # It may have come just after the wait was over.
            self._came.acquire(blocking=False)
            return is_here

    def _keep(self) -> None:
        try:
            while True:
                self._asked.acquire()
                if self._is_closed:
                    return
                place = self._take_place()
                _lock_bytes(self._file, place - 1)
                fcntl.flock(self._file, fcntl.LOCK_EX)
                self._hand_over()
                _unlock_bytes(self._file, place - 1, 2)
                if self._is_closed:
                    return
        finally:
            # After a fault of the kernel's the next caller finds no request, and makes its own.
            with self._guard:
                self._keeper = None
                self._is_asked = False
                if self._is_closed:
                    self._close_file()

    def _hand_over(self) -> None:
        with self._guard:
            self._is_asked = False
            if self._is_wanted:
                self._is_here = True
                self._came.release()
            else:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _take_place(self) -> int:
        _lock_bytes(self._file, _COUNTER)
        try:
            written = os.pread(self._file, _NUMBER.size, 0)
            last = _NUMBER.unpack(written)[0] if len(written) == _NUMBER.size else 0
            # 1 is the place before the first one. A file that others wrote to begins anew.
            place = last + 1 if 0 < last < _LAST_PLACE else 2
            _lock_bytes(self._file, place)
            os.pwrite(self._file, _NUMBER.pack(place), 0)
        finally:
            _unlock_bytes(self._file, _COUNTER)
        return place

    def _is_a_line(self) -> bool:
        found = fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, _ANY_PLACE)
        return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _lock_bytes(file: int, start: int) -> None:
    wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, 1, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLKW, wanted)


def _unlock_bytes(file: int, start: int, count: int = 1) -> None:
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, start, count, 0))


def _shut() -> threading.Lock:
    """A lock that is held from its beginning: whoever acquires it waits for a release."""
    lock = threading.Lock()
    lock.acquire()
    return lock


def _state(pid: str) -> str:
    with suppress(OSError, IndexError):
        fields = Path("/proc", pid, "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return " (stopped)" if fields[0] in "tT" else ""
    return ""
