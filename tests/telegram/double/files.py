"""Files that went through Telegram, and the links that lead to them for an hour."""

import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.telegram.double.clock import Clock
from tests.telegram.double.errors import ApiError, bad_request

MOST_BYTES_TO_FETCH = 20 * 1024**2
LINK_SECONDS = 3600.0

Source = Path | bytes
"""What is sent: a file of the disk, or its bytes."""


@dataclass
class StoredFile:
    """A file at Telegram; size in bytes is what it says, whatever the source holds."""

    id: str
    unique_id: str
    path: str
    source: Source = field(repr=False)
    size: int
    is_available: bool = True
    link_ends_at: float = 0.0

    def described(self) -> dict[str, Any]:
        """The members that every file's JSON has."""
        said = {"file_id": self.id, "file_unique_id": self.unique_id}
        return {**said, "file_size": self.size} if self.size else said

    def stored_bytes(self) -> int:
        """How many bytes it truly has."""
        return _size(self.source)

    def data(self) -> bytes:
        """Its bytes."""
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()


class Files:
    """All files; is_local: as a server of one's own with --local, which keeps them on its disk.

    directory is where such a server keeps them: a folder named by the token is in it, as in the
    original.
    """

    def __init__(self, clock: Clock, token: str, directory: Path, is_local: bool) -> None:
        self._clock = clock
        self._folder = directory / token
        self._is_local = is_local
        self._files: dict[str, StoredFile] = {}

    def add(self, source: Source, folder: str, suffix: str, size: int | None = None) -> StoredFile:
        """Keep a file; size, in bytes, is its own when not said."""
        number = len(self._files)
        digest = hashlib.sha256(source if isinstance(source, bytes) else str(source).encode())
        found = StoredFile(
            # The same file has another id each time it is sent, and the same unique one.
            id=f"AwACAgIAAxkBAAI{number:04d}{digest.hexdigest()[:40]}",
            unique_id=f"AgAD{digest.hexdigest()[:11]}",
            path=f"{folder}/file_{number}{suffix}",
            source=source,
            size=_size(source) if size is None else size,
        )
        self._files[found.id] = found
        return found

    def find(self, file_id: str) -> StoredFile | None:
        """The file of that id."""
        return self._files.get(file_id)

    def open_link(self, file_id: str) -> dict[str, Any]:
        """The answer of getFile: a path, good for an hour; ApiError when there is none."""
        if not file_id:
            raise bad_request("file_id not specified")
        found = self._files.get(file_id)
        if found is None:
            raise bad_request("invalid file_id")
        if not self._is_local and found.size > MOST_BYTES_TO_FETCH:
            raise bad_request("file is too big")
        if not found.is_available:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        found.link_ends_at = self._clock.now() + LINK_SECONDS
        path = str(self._put_on_disk(found)) if self._is_local else found.path
        return {**found.described(), "file_path": path}

    def fetch(self, path: str) -> StoredFile:
        """The file that a path leads to, relative or absolute; 404 when none, or no longer."""
        for found in self._files.values():
            is_it = path in (found.path, str(self._folder / found.path).lstrip("/"))
            if is_it and self._clock.now() < found.link_ends_at:
                return found
        raise ApiError(404, "Not Found")

    def _put_on_disk(self, found: StoredFile) -> Path:
        path = self._folder / found.path
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(found.source, bytes):
                path.write_bytes(found.source)
            else:
                shutil.copyfile(found.source, path)
        return path


def _size(source: Source) -> int:
    return len(source) if isinstance(source, bytes) else source.stat().st_size
