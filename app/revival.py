"""Sending an ended job back to work: the panel, the API and the console all come through here."""

from datetime import datetime

from app.errors import KINDS, AppError
from app.job import Job, State, StoredFile
from app.queue.port import Queue
from app.storage.port import Storage


def revive(queue: Queue, storage: Storage, job_id: str, now: datetime) -> Job:
    """Send a failed or dead job back to where it ended (P15).

    When its converted copy is gone, cut short or could not be read, it begins anew from what was
    handed in. AppError not_found, wrong_state, or source_missing when nothing is left to work on.
    """
    job = queue.get(job_id)
    copy = queue.file(job.file)
    is_whole = _is_whole(storage, copy)
    has_source = storage.exists(queue.file(job.source_file))
    if not (is_whole or has_source):
        raise AppError("source_missing")
    is_doubtful = not is_whole or job.error_code == "storage_failed"
    revived = queue.revive(job_id, now, from_source=is_doubtful and has_source)
    if revived.file != job.file:
        # After the rows: until then a job that was not revived could still need it.
        storage.delete(copy)
    return revived


def ends_alike(job: Job) -> bool:
    """True when the verdict was on the recording itself: revived, it most likely ends so again.

    It may be revived all the same (P15): settings and converters change.
    """
    kind = KINDS.get(job.error_code or "")
    is_verdict = kind is not None and kind.permanent and job.error_code != "cancelled"
    return job.state is State.FAILED and is_verdict


def _is_whole(storage: Storage, file: StoredFile) -> bool:
    return storage.exists(file) and storage.local_path(file).stat().st_size == file.size
