"""The storage's contract: files by record, errors without names, paths or keys (S12)."""

from pathlib import Path
from typing import BinaryIO, Protocol

from app.job import StoredFile


class Draft(Protocol):
    """A file that is being received: written once, hashed on the way, then kept or discarded."""

    size: int

    def write(self, data: bytes, /) -> int:
        """Append; beyond the size limit AppError too_large, on a full disk AppError disk_full."""

    def discard(self) -> None:
        """Remove what was written; harmless after keep() and when called twice."""


class Storage(Protocol):
    """Where recordings and converted copies lie."""

    def draft(self, limit_bytes: int) -> Draft:
        """A new draft on the storage's own disk, so that keeping it copies nothing."""

    def keep(self, draft: Draft) -> StoredFile:
        """Make a draft durable under its final name; an empty one is AppError empty_file.

        The file and its directory are synced before this returns (P45). Its kind, and so its
        extension, is decided by its bytes (S04).
        """

    def adopt(self, path: Path, extension: str, media_type: str) -> StoredFile:
        """Make a finished local file durable under a new name; the path is gone afterwards."""

    def copy(self, file: StoredFile) -> StoredFile:
        """A second record of the same bytes, sharing the disk space where the disk can."""

    def local_path(self, file: StoredFile) -> Path:
        """Where a child process can read the bytes; AppError source_missing when they are gone."""

    def open(self, file: StoredFile) -> BinaryIO:
        """The bytes, for reading; AppError source_missing when they are gone."""

    def exists(self, file: StoredFile) -> bool:
        """True when the bytes are there."""

    def delete(self, file: StoredFile) -> None:
        """Remove the bytes; harmless when they are gone."""
