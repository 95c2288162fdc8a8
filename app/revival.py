"""Sending an ended job back to work: the panel, the API and the console all come through here."""

from datetime import datetime

from app.errors import AppError
from app.job import Job, StoredFile
from app.queue.port import Queue
from app.storage.port import Storage


def revive(queue: Queue, storage: Storage, job_id: str, now: datetime) -> Job:
    """Send a failed or dead job back to where it ended (P15).

    When its converted copy is gone or cut short, it begins anew from what was handed in.
    AppError not_found, wrong_state, or source_missing when there is nothing left to work on.
    """
    job = queue.get(job_id)
    if _is_whole(storage, queue.file(job.file)):
        return queue.revive(job_id, now)
    if not storage.exists(queue.file(job.source_file)):
        raise AppError("source_missing")
    return queue.revive(job_id, now, from_source=True)


def _is_whole(storage: Storage, file: StoredFile) -> bool:
    return storage.exists(file) and storage.local_path(file).stat().st_size == file.size
