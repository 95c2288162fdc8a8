"""What is opened in a folder, as the kernel tells (inotify)."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_OPEN = 0x20


@contextmanager
def opened_in(folder: Path) -> Iterator[set[str]]:
    """The names of the files that anybody opened in the folder; filled when the block ends."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert library.inotify_add_watch(descriptor, str(folder).encode(), _IN_OPEN) >= 0
    names: set[str] = set()
    try:
        yield names
        names |= _read(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> set[str]:
    names = set()
    try:
        data = os.read(descriptor, 65536)
    except BlockingIOError:
        return set()
    while data:
        length = struct.unpack_from("iIII", data)[3]
        names.add(data[16 : 16 + length].rstrip(b"\0").decode())
        data = data[16 + length :]
    return names - {""}
