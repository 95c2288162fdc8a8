"""What nobody asks for: emptying the bin (S31), and settling replies that nobody will send."""

import logging
from datetime import datetime
from functools import partial
from pathlib import Path

from app import liveness
from app.delivery import give_up
from app.queue.port import Queue
from app.queue.replies import Replies
from app.storage.port import Storage

log = logging.getLogger(__name__)

_BATCH = 100
"""A worker that is told to stop waits for one batch at most."""


def empty_bin(queue: Queue, storage: Storage, bin_seconds: float, now: datetime) -> int:
    """Remove some jobs whose time in the bin is over, with their files; gives how many went.

    Call it until it gives 0. The files go first: a process that ends in between leaves rows that
    the next run finds again, never files that nothing knows of. Jobs whose files cannot be
    removed keep no other from going.
    """
    removed = stuck = after = 0
    while not removed and (jobs := queue.binned(bin_seconds, _BATCH, now, after=after)):
        for job in jobs:
            if _has_lost_its_files(queue, storage, job.id):
                removed += queue.erase(job.id, bin_seconds, now)
            else:
                stuck += 1
        after = jobs[-1].seq
    if stuck:
        log.error("files of deleted jobs cannot be removed", extra={"jobs": stuck})
    if removed:
        log.info("the bin was emptied", extra={"jobs": removed})
    return removed


def settle_replies(replies: Replies, data_dir: Path, wait_seconds: float, now: datetime) -> None:
    """Settle what ended processes were sending, and what waited too long while no bot runs (P24).

    A bot that runs does this itself, and knows better whether it will come to send.
    """
    has_bot = bool(liveness.alive(data_dir, liveness.BOT))
    give_up(
        replies,
        is_gone=partial(liveness.is_gone, data_dir),
        wait_seconds=None if has_bot else wait_seconds,
        now=now,
    )


def _has_lost_its_files(queue: Queue, storage: Storage, job_id: str) -> bool:
    files = queue.files_of(job_id)
    for file in files:
        storage.delete(file)
    return not any(storage.exists(file) for file in files)
