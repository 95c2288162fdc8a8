"""Taking a recording in: the form, the API and the bot all come through here.

When accept() returns, the recording is safe: its bytes and their directory are synced, and the
rows are committed (P45). Only then may the sender be told.
"""

import hashlib
import logging
import re
from dataclasses import dataclass
from datetime import datetime

from app import metrics
from app.errors import AppError
from app.job import Job, Source, StoredFile
from app.languages import SPOKEN
from app.queue.port import Enqueued, NewJob, Queue
from app.settings import Settings
from app.storage.port import Draft, Storage

log = logging.getLogger(__name__)

NAME_LENGTH = 255
OWNER_PREFIX = "owner:"
"""What the name of a signed-in owner begins with, where a job keeps its sender."""
COMMAND = "command"
"""The sender of what the console hands in."""
_NAMELESS = "recording"
# Control characters would break headers and lines; bidirectional marks would let a name show
# itself backwards ("gpj.exe"); a name of invisible signs would be nothing to click on.
_UNSHOWABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


@dataclass(frozen=True)
class Addressee:
    """The message of a chat that a job's text answers; the numbers are the bot's own.

    One message gives one job, however often it comes (P46).
    """

    bot: int
    chat: int
    message: int

    @property
    def key(self) -> str:
        """What the message is known by among all jobs."""
        return f"tg:{self.bot}:{self.chat}:{self.message}"

    @property
    def sender(self) -> str:
        """The chat, as a job keeps its sender."""
        return f"telegram:{self.chat}"


class Intake:
    """The one door behind all doors."""

    def __init__(self, settings: Settings, queue: Queue, storage: Storage) -> None:
        self._limit_bytes = int(settings.intake.max_size)
        self._queue = queue
        self._storage = storage

    def draft(self) -> Draft:
        """A place to write a recording's bytes to; bounded by intake.max_size."""
        return self._storage.draft(self._limit_bytes)

    def accept(
        self,
        draft: Draft,
        *,
        source: Source,
        display_name: str,
        language: str | None,
        sender: str | None,
        idempotency_key: str | None = None,
        reuse_same_bytes: bool = False,
        addressee: Addressee | None = None,
        now: datetime,
    ) -> Enqueued:
        """Make a received draft a job, or give the job that stands there for it already.

        With an addressee the text is owed to its chat, and its message is the key.

        AppError empty_file, unknown_language, idempotency_conflict, disk_full or
        storage_failed; whatever happens, the draft is gone afterwards.
        """
        try:
            check_language(language)
            file = self._storage.keep(draft)
        except BaseException:
            draft.discard()
            raise
        new = NewJob(
            file=file,
            source=source,
            display_name=clean_name(display_name),
            language=language or None,
            sender=sender,
            dedupe_key=addressee.key if addressee else _scoped(sender, idempotency_key),
            dedupe_digest=_digest(file, language) if idempotency_key else None,
            reuse_same_bytes=reuse_same_bytes,
            tg_chat_id=addressee.chat if addressee else None,
            tg_reply_message_id=addressee.message if addressee else None,
            priority=_priority(sender),
        )
        return self._enqueue(new, now)

    def again(self, job_id: str, sender: str | None, now: datetime) -> Job:
        """A new job from the bytes of another; AppError not_found or source_missing."""
        old = self._queue.get(job_id)
        twin = self._storage.copy(self._queue.file(old.source_file))
        new = NewJob(
            file=twin,
            # The chat got its text; this one is asked for here, and nobody waits for it there.
            source=Source.WEB if old.source is Source.TELEGRAM else old.source,
            display_name=old.display_name,
            language=old.language,
            sender=sender,
            priority=_priority(sender),
        )
        return self._enqueue(new, now).job

    def _enqueue(self, new: NewJob, now: datetime) -> Enqueued:
        try:
            enqueued = self._queue.enqueue(new, now)
        except (AppError, ValueError):
            # Only what surely was not committed loses its bytes: after any other fault the row
            # may stand, and a file too many is better than a recording too few.
            self._storage.delete(new.file)
            raise
        if enqueued.created:
            metrics.accepted.labels(source=new.source.value).inc()
            facts = {"job_id": enqueued.job.id, "step": "intake", "attempt": 0}
            log.info("handed in", extra={**facts, "source": new.source.value})
        else:
            self._storage.delete(new.file)
        return enqueued


def check_language(language: str | None) -> None:
    """Refuse a language that no engine knows; None and empty mean: detect it."""
    if language and language not in SPOKEN:
        raise AppError("unknown_language")


def clean_name(name: str) -> str:
    """The sender's file name as it may be shown: no control or direction marks, bounded."""
    return _UNSHOWABLE.sub("", name).strip()[:NAME_LENGTH] or _NAMELESS


def _priority(sender: str | None) -> int:
    """The owner's own goes first (P50); the console is the owner's as well."""
    is_owners = sender is not None and (sender == COMMAND or sender.startswith(OWNER_PREFIX))
    return int(is_owners)


def _scoped(sender: str | None, key: str | None) -> str | None:
    """A key means something only between one sender and us."""
    return f"http:{sender or ''}:{key}" if key else None


def _digest(file: StoredFile, language: str | None) -> str:
    return hashlib.sha256(f"{file.sha256}:{language or ''}".encode()).hexdigest()
