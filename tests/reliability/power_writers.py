"""Processes that hand in and work while the power may go: each tells what was acknowledged.

A line is told only after the verb has returned, as a sender is told 201. It goes down a pipe, which
a power cut does not touch.
"""

import os
import sys
from itertools import count
from pathlib import Path

from app import db
from app.clock import utcnow
from app.intake import Intake
from app.job import ACTIVE, Segment, Source, Step, Transcript
from app.liveness import Presence
from app.migrate import open_database
from app.queue.port import Claim, Converted, Recognized, Started, StepResult
from app.queue.sqlite import SqliteQueue
from app.settings import Settings
from app.storage.local import LocalStorage

SAFE = "safe"
NORMAL = "normal"
NO_SYNC = "no sync"
"""How it writes: as the product does; with commits that are not synced; with files that are not."""

_BYTES = 30_000


def main(role: str, data_dir: Path, how: str) -> None:
    """Write until killed."""
    if how == NORMAL:
        _commit_without_sync()
    if how == NO_SYNC:
        os.fsync = lambda _: None
    presence = Presence(data_dir, role)
    queue = SqliteQueue(open_database(data_dir, utcnow()))
    storage = LocalStorage(data_dir, presence.scratch)
    if role == "web":
        _hand_in(Intake(Settings(), queue, storage))
    _work(queue, storage, presence)


def _commit_without_sync() -> None:
    kept = tuple(pragma for pragma in db._PRAGMAS if not pragma.startswith("synchronous"))
    db._PRAGMAS = (*kept, "synchronous=NORMAL")  # type: ignore[assignment]


def _hand_in(intake: Intake) -> None:
    for number in count():
        draft = intake.draft()
        draft.write(b"OggS" + os.urandom(_BYTES))
        job = intake.accept(
            draft,
            source=Source.API,
            display_name=f"talk {number}",
            language=None,
            sender=f"token:{os.getpid()}",
            now=utcnow(),
        ).job
        _tell("accepted", job.id)


def _work(queue: SqliteQueue, storage: LocalStorage, presence: Presence) -> None:
    while True:
        for state in ACTIVE:
            held = queue.claim(
                state, worker=presence.name, lease_seconds=3600, max_attempts=5, now=utcnow()
            )
            if isinstance(held, Claim):
                _tell("claimed", held.job.id, held.step, held.acquisition_id)
                result = _result(held, storage, presence.scratch / "converted.wav")
                assert queue.finish(held, result, utcnow())
                _tell("finished", held.job.id, held.step)


def said_in(job_id: str) -> str:
    """The text of a job."""
    return f"What was said in {job_id}."


def _result(held: Claim, storage: LocalStorage, copy: Path) -> StepResult:
    if held.step is Step.CONVERT:
        copy.write_bytes(os.urandom(_BYTES))
        return Converted(storage.adopt(copy, ".wav", "audio/wav"), 1.0, source_is_playable=True)
    if held.step is Step.RECOGNIZE:
        return Started("operation", "Light", 0)
    text = said_in(held.job.id)
    return Recognized(Transcript(text, (Segment(0.0, 1.0, text),)), "en")


def _tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
