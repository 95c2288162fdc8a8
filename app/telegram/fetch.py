"""Fetching a recording from Telegram into a draft on the storage's disk, ahead of its turn."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from app.errors import AppError
from app.storage.kinds import HEAD_BYTES, UNKNOWN, sniff
from app.storage.port import Draft
from app.telegram.api import BotApi
from app.telegram.incoming import Recording

SLOTS = 4
"""How many files come at once: an album's ten must not wait for each other's round trips."""

_LOOK_SECONDS = 0.2
"""How often whoever waits for a file looks whether we stop."""

# Starts of files that are surely no recording. What is not known either way is fetched whole, and
# the converter finds out.
_SOUNDLESS = (
    b"%PDF",
    b"PK\x03\x04",
    b"\xff\xd8\xff",
    b"\x89PNG",
    b"GIF8",
    b"II*\x00",
    b"MM\x00*",
    b"{\\rtf",
    b"\xd0\xcf\x11\xe0",
    b"Rar!",
    b"7z\xbc\xaf",
    b"\x1f\x8b",
)


class StoppedError(Exception):
    """The process stops: the file is fetched by the next one."""


class Fetcher:
    """Fetches files with some at work at once; stopping ends what is being fetched."""

    def __init__(
        self, api: BotApi, make_draft: Callable[[], Draft], stopping: threading.Event
    ) -> None:
        self._api = api
        self._make_draft = make_draft
        self._stopping = stopping
        self._slots = threading.Semaphore(SLOTS)

    def begin(self, recording: Recording, *, only_known: bool) -> "Fetch":
        """Begin to fetch; only_known ends at the first bytes of what is not clearly media."""
        is_document = recording.kind == "document"
        look = (_only_media if only_known else _perhaps_media) if is_document else _anything
        coming: Future[Draft] = Future()
        # Not a pool: the interpreter would wait at its end for a file that does not come.
        threading.Thread(
            target=self._run, args=(coming, recording.file_id, look), name="fetch", daemon=True
        ).start()
        return Fetch(coming, self._stopping)

    def _run(self, coming: "Future[Draft]", file_id: str, look: Callable[[bytes], bool]) -> None:
        with self._slots:
            if not coming.set_running_or_notify_cancel():
                return
            try:
                draft = self._fetch(file_id, look)
            except BaseException as error:
                coming.set_exception(error)
            else:
                coming.set_result(draft)

    def _fetch(self, file_id: str, look: Callable[[bytes], bool]) -> Draft:
        draft = self._make_draft()
        try:
            watched = _Watched(draft, look, self._stopping)
            self._api.download(self._api.file(file_id), watched)
            watched.end()
        except BaseException:
            draft.discard()
            raise
        return draft


class Fetch:
    """A file on its way."""

    def __init__(self, coming: "Future[Draft]", stopping: threading.Event) -> None:
        self._coming = coming
        self._stopping = stopping

    def take(self) -> Draft:
        """The whole file; raises what went wrong: AppError, StoppedError or the API's errors."""
        while not self._stopping.is_set():
            if wait([self._coming], _LOOK_SECONDS).done:
                return self._coming.result()
        raise StoppedError

    def drop(self) -> None:
        """Nobody wants it: what came, or still comes, goes."""
        if not self._coming.cancel():
            self._coming.add_done_callback(_discard)


class _Watched:
    """A draft that ends what is no recording, and what comes while we stop."""

    def __init__(
        self, draft: Draft, look: Callable[[bytes], bool], stopping: threading.Event
    ) -> None:
        self._draft = draft
        self._look = look
        self._stopping = stopping
        self._head = b""
        self.size = 0

    def write(self, data: bytes, /) -> int:
        """Append; AppError not_media or StoppedError ends it."""
        if self._stopping.is_set():
            raise StoppedError
        if len(self._head) < HEAD_BYTES:
            self._head = (self._head + data)[:HEAD_BYTES]
            if len(self._head) == HEAD_BYTES:
                self._judge()
        self._draft.write(data)
        self.size = self._draft.size
        return len(data)

    def end(self) -> None:
        """All has come; AppError not_media for a short file that is none."""
        if 0 < len(self._head) < HEAD_BYTES:
            self._judge()

    def discard(self) -> None:
        """See storage.port.Draft."""
        self._draft.discard()

    def _judge(self) -> None:
        if not self._look(self._head):
            raise AppError("not_media")


def _discard(coming: "Future[Draft]") -> None:
    if not coming.cancelled() and coming.exception() is None:
        coming.result().discard()


def _anything(head: bytes) -> bool:
    return True


def _only_media(head: bytes) -> bool:
    return sniff(head) is not UNKNOWN


def _perhaps_media(head: bytes) -> bool:
    """False for what is surely something else: a picture, an archive, a text."""
    if sniff(head) is not UNKNOWN:
        return True
    is_webp = head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    return not (head.startswith(_SOUNDLESS) or is_webp or _is_text(head))


def _is_text(head: bytes) -> bool:
    # The last character may be cut in its middle.
    text = head.decode("utf-8", "ignore")
    is_whole = len(text.encode()) >= len(head) - 3
    return is_whole and all(sign.isprintable() or sign in "\t\r\n\ufeff" for sign in text)
