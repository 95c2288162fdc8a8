"""The storage on the local disk: data/storage/<collection>/<record>/<name> (S11)."""

import errno
import functools
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar

from app import folders
from app.clock import new_file_stem, new_id
from app.errors import AppError
from app.job import StoredFile
from app.storage.kinds import HEAD_BYTES, sniff
from app.storage.port import Draft

COLLECTION = "files"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_LINK = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV)
_RECORD = re.compile(r"[a-z0-9]{15}")
_NAME = re.compile(r"[0-9a-f-]{36}\.[a-z0-9]{2,4}")

_Given = ParamSpec("_Given")
_Got = TypeVar("_Got")


def _no_secrets(work: Callable[_Given, _Got]) -> Callable[_Given, _Got]:
    """Turn the system's error, which holds paths, into ours with the id of the file record.

    Raised when the except block is over, so that neither __cause__ nor __context__ carries the
    system's (S12). A context manager cannot do it: its __exit__ still runs inside the handling.
    """

    @functools.wraps(work)
    def safe(*args: _Given.args, **kwargs: _Given.kwargs) -> _Got:
        try:
            return work(*args, **kwargs)
        except OSError as error:
            code = "disk_full" if error.errno in _FULL else "storage_failed"
            reason = errno.errorcode.get(error.errno or 0, "EIO")
        record = next((given.id for given in args if isinstance(given, StoredFile)), "")
        raise AppError(code, f"file record {record}: {reason}" if record else reason)

    return safe


class LocalDraft:
    """A file being received in the scratch directory; see port.Draft."""

    @_no_secrets
    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.size = 0
        self.head = b""
        self._limit_bytes = limit_bytes
        self._digest = hashlib.sha256()
        descriptor, name = tempfile.mkstemp(dir=folder, prefix="draft-")
        self.path = Path(name)
        self._file = os.fdopen(descriptor, "wb")

    @_no_secrets
    def write(self, data: bytes, /) -> int:
        """See port.Draft."""
        if self.size + len(data) > self._limit_bytes:
            raise AppError("too_large")
        if len(self.head) < HEAD_BYTES:
            self.head += data[: HEAD_BYTES - len(self.head)]
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)
        return len(data)

    @_no_secrets
    def settle(self) -> str:
        """Sync what was written and close it; gives the sha256 in hex."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._digest.hexdigest()

    def discard(self) -> None:
        """See port.Draft."""
        # A full disk refuses the last buffered bytes; they are unwanted anyway. What cannot be
        # removed goes with the scratch directory.
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self.path.unlink()


class LocalStorage:
    """The Storage of app.storage.port in one data directory.

    scratch is this process's own directory on the same disk (app.liveness.Presence): a draft
    reaches its final place by a rename, and what a killed process left is swept away.
    """

    def __init__(self, data_dir: Path, scratch: Path) -> None:
        self._root = data_dir / "storage" / COLLECTION
        self._scratch = scratch

    def draft(self, limit_bytes: int) -> LocalDraft:
        """See port.Storage."""
        return LocalDraft(self._scratch, limit_bytes)

    def keep(self, draft: Draft) -> StoredFile:
        """See port.Storage."""
        assert isinstance(draft, LocalDraft)  # noqa: S101 - a draft goes back to its own storage
        if draft.size == 0:
            draft.discard()
            raise AppError("empty_file")
        kind = sniff(draft.head)
        sha256 = draft.settle()
        return self._place(draft.path, kind.extension, kind.media_type, draft.size, sha256)

    def adopt(self, path: Path, extension: str, media_type: str) -> StoredFile:
        """See port.Storage."""
        return self._place(path, extension, media_type, _settled_size(path), None)

    def copy(self, file: StoredFile) -> StoredFile:
        """See port.Storage."""
        twin = self._scratch / f"copy-{new_id()}"
        try:
            self._duplicate(file, twin)
            kept = self.adopt(twin, Path(file.file).suffix, file.media_type)
        finally:
            with suppress(OSError):
                twin.unlink(missing_ok=True)
        return StoredFile(kept.id, kept.file, kept.size, file.sha256, kept.media_type)

    @_no_secrets
    def local_path(self, file: StoredFile) -> Path:
        """See port.Storage."""
        if not self.exists(file):
            raise AppError("source_missing", f"file record {file.id}")
        return self._path(file)

    @_no_secrets
    def open(self, file: StoredFile) -> BinaryIO:
        """See port.Storage."""
        return self.local_path(file).open("rb")

    @_no_secrets
    def exists(self, file: StoredFile) -> bool:
        """See port.Storage."""
        return _is_ours(file) and self._path(file).is_file()

    def delete(self, file: StoredFile) -> None:
        """See port.Storage."""
        # Without a name of ours (a copy elsewhere has none) the folder above would be the root.
        if _is_ours(file):
            shutil.rmtree(self._path(file).parent, ignore_errors=True)

    def _place(
        self, path: Path, extension: str, media_type: str, size: int, sha256: str | None
    ) -> StoredFile:
        stored = StoredFile(new_id(), new_file_stem() + extension, size, sha256, media_type)
        self._move(path, stored)
        return stored

    @_no_secrets
    def _move(self, path: Path, stored: StoredFile) -> None:
        """Rename a synced file to its final name and sync the directories above it (P45)."""
        final = self._path(stored)
        folders.make(self._root)
        final.parent.mkdir()
        try:
            path.chmod(0o600)
            path.rename(final)
            folders.sync(final.parent)
            folders.sync(self._root)
        except OSError:
            shutil.rmtree(final.parent, ignore_errors=True)
            raise

    @_no_secrets
    def _duplicate(self, file: StoredFile, twin: Path) -> None:
        source = self.local_path(file)
        try:
            os.link(source, twin)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            shutil.copyfile(source, twin)

    def _path(self, file: StoredFile) -> Path:
        return self._root / file.id / file.file


def _is_ours(file: StoredFile) -> bool:
    """True for a name of our own making: no other may become a path."""
    return bool(_RECORD.fullmatch(file.id) and _NAME.fullmatch(file.file))


@_no_secrets
def _settled_size(path: Path) -> int:
    """The size in bytes of a finished file, once it is synced."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size
