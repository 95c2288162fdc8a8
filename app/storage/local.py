"""The storage on the local disk: data/storage/<collection>/<record>/<name> (S11)."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from app.clock import new_file_stem, new_id
from app.errors import AppError
from app.job import StoredFile
from app.storage.kinds import HEAD_BYTES, sniff
from app.storage.port import Draft

COLLECTION = "files"
_HASH_BLOCK_BYTES = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


class LocalDraft:
    """A file being received in the scratch directory; see port.Draft."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.size = 0
        self.head = b""
        self._limit_bytes = limit_bytes
        self._digest = hashlib.sha256()
        with _no_secrets(""):
            descriptor, name = tempfile.mkstemp(dir=folder, prefix="draft-")
        self.path = Path(name)
        self._file = os.fdopen(descriptor, "wb")

    def write(self, data: bytes, /) -> int:
        """See port.Draft."""
        if self.size + len(data) > self._limit_bytes:
            raise AppError("too_large")
        if len(self.head) < HEAD_BYTES:
            self.head += data[: HEAD_BYTES - len(self.head)]
        with _no_secrets(""):
            self._file.write(data)
        self._digest.update(data)
        self.size += len(data)
        return len(data)

    def settle(self) -> str:
        """Sync what was written and close it; gives the sha256 in hex."""
        with _no_secrets(""):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        return self._digest.hexdigest()

    def discard(self) -> None:
        """See port.Draft."""
        # A full disk refuses the last buffered bytes; they are unwanted anyway.
        with suppress(OSError):
            self._file.close()
        self.path.unlink(missing_ok=True)


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
        with _no_secrets(""), path.open("rb") as file:
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
        return self._place(path, extension, media_type, size, None)

    def copy(self, file: StoredFile) -> StoredFile:
        """See port.Storage."""
        source = self.local_path(file)
        twin = self._scratch / f"copy-{new_id()}"
        with _no_secrets(file.id):
            try:
                os.link(source, twin)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV):
                    raise
                shutil.copyfile(source, twin)
        extension = Path(file.file).suffix
        kept = self.adopt(twin, extension, file.media_type)
        return StoredFile(kept.id, kept.file, kept.size, file.sha256, kept.media_type)

    def local_path(self, file: StoredFile) -> Path:
        """See port.Storage."""
        path = self._path(file)
        if not path.is_file():
            raise AppError("source_missing", f"file record {file.id}")
        return path

    def open(self, file: StoredFile) -> BinaryIO:
        """See port.Storage."""
        path = self.local_path(file)
        with _no_secrets(file.id):
            return path.open("rb")

    def exists(self, file: StoredFile) -> bool:
        """See port.Storage."""
        return self._path(file).is_file()

    def delete(self, file: StoredFile) -> None:
        """See port.Storage."""
        shutil.rmtree(self._path(file).parent, ignore_errors=True)

    def _place(
        self, path: Path, extension: str, media_type: str, size: int, sha256: str | None
    ) -> StoredFile:
        """Rename a synced file to its final name and sync the directories above it (P45)."""
        stored = StoredFile(new_id(), new_file_stem() + extension, size, sha256, media_type)
        final = self._path(stored)
        with _no_secrets(stored.id):
            final.parent.mkdir(parents=True)
            path.rename(final)
            final.chmod(0o600)
            _sync_folder(final.parent)
            _sync_folder(self._root)
        return stored

    def _path(self, file: StoredFile) -> Path:
        return self._root / file.id / file.file


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _no_secrets(record: str) -> Iterator[None]:
    """Turn the system's error, which holds the stored name, into ours with the record's id.

    Raised outside the except block, so that neither __cause__ nor __context__ carries it (S12).
    """
    fault: AppError | None = None
    try:
        yield
    except OSError as error:
        code = "disk_full" if error.errno in _FULL else "storage_failed"
        reason = errno.errorcode.get(error.errno or 0, "EIO")
        fault = AppError(code, f"file record {record}: {reason}" if record else reason)
    if fault:
        raise fault
