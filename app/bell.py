"""A bell for each process that waits for work: whoever makes a job ready rings them all (P40).

A bell is a FIFO in data/run, named after its process (app.liveness). A ring says nothing but
"look": one that is lost costs the wait until the next poll, so no fault of a bell is ever a
fault of the one who rings.
"""

import logging
import os
import select
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

_SUFFIX = ".bell"
_FULL_BYTES = 65536
"""What a FIFO of Linux holds: one read takes in every ring there was."""
_MS_PER_SECOND = 1000


class Bell:
    """The bell of this process, from its making to close().

    Where the disk knows no FIFOs nobody else can ring it, and there is only the poll.
    """

    def __init__(self, data_dir: Path, name: str) -> None:
        self._path = path_of(data_dir, name)
        try:
            self._reader = self._writer = self._hang()
        except OSError as error:
            log.warning("no bell here, new jobs wait for the poll: %s", error.strerror)
            self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Wait so long for a ring; True when it came. All rings until now count as one."""
        if not self._poll.poll(seconds * _MS_PER_SECOND):
            return False
        with suppress(BlockingIOError):
            os.read(self._reader, _FULL_BYTES)
        return True

    def strike(self) -> None:
        """Ring this bell from inside the process."""
        # A full one rings already.
        with suppress(BlockingIOError):
            os.write(self._writer, b"!")

    def close(self) -> None:
        """Take the bell away; whoever rings it at this moment does not notice."""
        with suppress(OSError):
            self._path.unlink()
        for descriptor in {self._reader, self._writer}:
            os.close(descriptor)

    def _hang(self) -> int:
        os.mkfifo(self._path, 0o600)
        # For writing too: without a writer a FIFO reads as ended, and would never wait again.
        # Close-on-exec, so that no child keeps the bell of a killed worker.
        return os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def ring(data_dir: Path, besides: str = "") -> None:
    """Ring every bell but the one of the process named besides; never waits, never raises."""
    with suppress(OSError), os.scandir(data_dir / "run") as files:
        for file in files:
            if file.name.endswith(_SUFFIX) and file.name != besides + _SUFFIX:
                with suppress(OSError):
                    _ring(file.path)


def path_of(data_dir: Path, name: str) -> Path:
    """Where the bell of the process of that name is."""
    return data_dir / "run" / f"{name}{_SUFFIX}"


def names(data_dir: Path) -> Sequence[str]:
    """The processes that have a bell, or left one behind."""
    return [path.stem for path in (data_dir / "run").glob(f"*{_SUFFIX}")]


def _ring(path: str) -> None:
    # Nobody listening is ENXIO, a full bell EAGAIN: it rings already. Anything else: see above.
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.write(descriptor, b"!")
    finally:
        os.close(descriptor)
