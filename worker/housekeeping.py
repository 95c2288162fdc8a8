"""What is done about once an hour: what has lain in the bin long enough is removed (S31)."""

import logging
from datetime import datetime

from app.queue.port import Queue
from app.storage.port import Storage

log = logging.getLogger(__name__)

_BATCH = 100
"""A worker that is told to stop waits for one batch at most."""


def empty_bin(queue: Queue, storage: Storage, bin_seconds: float, now: datetime) -> int:
    """Remove some jobs whose time in the bin is over, with their files; gives how many went.

    Call it until it gives 0. The files go first: a process that ends in between leaves rows that
    the next run finds again, never files that nothing knows of.
    """
    removed = stuck = 0
    for job in queue.binned(bin_seconds, _BATCH, now):
        if _has_lost_its_files(queue, storage, job.id):
            removed += queue.erase(job.id, bin_seconds, now)
        else:
            stuck += 1
    if stuck:
        log.error("files of deleted jobs cannot be removed", extra={"jobs": stuck})
    if removed:
        log.info("the bin was emptied", extra={"jobs": removed})
    return removed


def _has_lost_its_files(queue: Queue, storage: Storage, job_id: str) -> bool:
    files = queue.files_of(job_id)
    for file in files:
        storage.delete(file)
    return not any(storage.exists(file) for file in files)
