"""Signs of life: each process holds a lock that the kernel drops when it ends, however it ends.

A claim of a worker proven gone need not wait for its lease (P41), "no worker is running" can be
said, and what a killed process left in its scratch directory can be removed.
"""

import fcntl
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from app import bell
from app.clock import new_id

WORKER = "worker"
WEB = "web"
BOT = "bot"
COMMAND = "command"


class Presence:
    """This process, alive: a held lock file, and a scratch directory of its own.

    `name` is unique for ever; it is what a claim names as its worker.
    """

    def __init__(self, data_dir: Path, role: str) -> None:
        self.name = f"{role}-{new_id()}"
        self._lock_path = _lock_path(data_dir, self.name)
        self._lock_path.parent.mkdir(parents=True, exist_ok=True)
        # Close-on-exec, as Python opens everything: a converter that inherited the lock would
        # make its killed worker look alive.
        self._lock_fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
        self.scratch = _scratch_path(data_dir, self.name)
        self.scratch.mkdir(parents=True)

    def close(self) -> None:
        """Leave in order: the scratch directory goes, then the lock."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self._lock_path.unlink(missing_ok=True)
        os.close(self._lock_fd)


def is_gone(data_dir: Path, name: str) -> bool:
    """True when the process of that name is proven to have ended."""
    try:
        descriptor = os.open(_lock_path(data_dir, name), os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        # Another user's, say, of `sudo pisar jobs`: nothing is proven.
        return False
    try:
        # Shared, so that two who ask at the same moment do not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def alive(data_dir: Path, role: str) -> Sequence[str]:
    """The names of the living processes of a role."""
    names = sorted(path.stem for path in (data_dir / "run").glob(f"{role}-*.lock"))
    return [name for name in names if not is_gone(data_dir, name)]


def workers_alive(data_dir: Path) -> int:
    """How many workers are running on this data directory."""
    return len(alive(data_dir, WORKER))


def sweep(data_dir: Path) -> int:
    """Remove what ended processes left behind; gives how many there were.

    Safe at any time: scratch directory and bell are made after the lock is held, so that those
    without a live lock belong to nobody.
    """
    left_by = {*_with_scratch(data_dir), *bell.names(data_dir)}
    gone = [name for name in left_by if is_gone(data_dir, name)]
    for name in gone:
        shutil.rmtree(_scratch_path(data_dir, name), ignore_errors=True)
        bell.path_of(data_dir, name).unlink(missing_ok=True)
        _lock_path(data_dir, name).unlink(missing_ok=True)
    return len(gone)


def _with_scratch(data_dir: Path) -> Sequence[str]:
    folder = data_dir / "tmp"
    return [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []


def _lock_path(data_dir: Path, name: str) -> Path:
    return data_dir / "run" / f"{name}.lock"


def _scratch_path(data_dir: Path, name: str) -> Path:
    return data_dir / "tmp" / name
