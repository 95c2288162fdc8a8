"""A disk in a file, whose power can be cut: an ext4 image on a loop device.

The cut is a copy of the image made while those who write are stopped: what the kernel had not yet
handed to the disk is in no copy. Needs root, loop devices and mkfs.ext4; NoDiskError says what is
missing.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MNT_DETACH = 2
_SIZE_BYTES = 256 << 20
# The kernel writes back by itself after five seconds: here nothing lasts that was not asked for.
_NO_KIND_WRITE_BACK = "commit=300"


class NoDiskError(Exception):
    """This machine does not let us make and mount a disk; the text says why."""


class LoopDisk:
    """One disk; `folder` is where it is mounted."""

    def __init__(self, image: Path, folder: Path) -> None:
        self._image = image
        self.folder = folder

    def cut(self, copy: Path) -> None:
        """What would be left of the disk if the power went now, as an image."""
        # cp leaves out what was never written; the image is mostly that.
        _run("cp", "--sparse=always", str(self._image), str(copy))


@contextmanager
def fresh_disk(folder: Path) -> Iterator[LoopDisk]:
    """An empty mounted disk; folder is for its image and where it is mounted."""
    if os.geteuid():
        raise NoDiskError("only root may mount a disk")
    if not Path("/dev/loop-control").exists():
        raise NoDiskError("there are no loop devices")
    image, mounted = folder / "disk.img", folder / "disk"
    with image.open("wb") as file:
        file.truncate(_SIZE_BYTES)
    _run("mkfs.ext4", "-q", "-F", str(image))
    with _mounted(image, mounted, _NO_KIND_WRITE_BACK):
        yield LoopDisk(image, mounted)


@contextmanager
def after_the_cut(copy: Path, folder: Path) -> Iterator[Path]:
    """A cut disk after the power is back: the file system's journal is replayed."""
    with _mounted(copy, folder):
        yield folder


@contextmanager
def _mounted(image: Path, folder: Path, options: str = "rw") -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    _run("mount", "-o", f"loop,{options}", str(image), str(folder))
    try:
        yield
    finally:
        # At once, even when a failed test still holds a file open: a mount that stayed would be
        # in the way of every later run.
        ctypes.CDLL(None).umount2(bytes(folder), _MNT_DETACH)


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        raise NoDiskError(f"{command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        words = error.stderr.decode(errors="replace").strip()
        raise NoDiskError(f"{command[0]}: {words}") from None
