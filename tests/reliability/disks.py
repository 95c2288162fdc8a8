"""A small disk in memory, to be filled to the brim."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_MNT_DETACH = 2
_BLOCK_BYTES = 4096


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[Path]:
    """A mounted disk of that size; skips the test where the machine lets us mount none."""
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", bytes(folder), b"tmpfs", 0, f"size={size_bytes}".encode()) != 0:
        pytest.skip("this machine does not let us mount a small disk")
    try:
        yield folder
    finally:
        # At once, even when a failed test still holds a file open: a mount that stayed would be
        # in the way of every later run.
        assert libc.umount2(bytes(folder), _MNT_DETACH) == 0


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Take every free block of the disk that a folder is on, and give them back on leaving."""
    ballast = folder / "ballast"
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while _takes(descriptor):
            pass
        yield
    finally:
        os.close(descriptor)
        ballast.unlink()


def _takes(descriptor: int) -> bool:
    try:
        return os.write(descriptor, bytes(_BLOCK_BYTES)) == _BLOCK_BYTES
    except OSError:
        return False
