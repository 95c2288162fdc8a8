"""What the queue's tests hand in: jobs, results and moments, as the doors and steps make them."""

from datetime import UTC, datetime
from typing import Any

from app.clock import later, new_file_stem, new_id
from app.job import Job, Piece, Segment, Source, State, StoredFile, Transcript
from app.queue.port import Buried, Claim, Converted, NewJob, Nothing, Queue, Recognized, Started

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LEASE = 8 * 3600
MAX_ATTEMPTS = 5


def at(seconds: float) -> datetime:
    """A moment so many seconds after the tests begin."""
    return later(START, seconds)


def stored_file(extension: str = ".ogg", sha256: str | None = None) -> StoredFile:
    return StoredFile(new_id(), new_file_stem() + extension, 1000, sha256, "audio/ogg")


def hand_in(queue: Queue, now: datetime = START, **fields: Any) -> Job:
    values = {"file": stored_file(), "source": Source.API, "display_name": "talk.ogg"} | fields
    return queue.enqueue(NewJob(**values), now).job


def claim(
    queue: Queue,
    state: State = State.CREATED,
    now: datetime = START,
    worker: str = "worker-one",
    lease: float = LEASE,
    max_attempts: int = MAX_ATTEMPTS,
) -> Claim | Buried | Nothing:
    return queue.claim(
        state, worker=worker, lease_seconds=lease, max_attempts=max_attempts, now=now
    )


def held(queue: Queue, state: State = State.CREATED, now: datetime = START, **how: Any) -> Claim:
    """A claim that must succeed."""
    found = claim(queue, state, now, **how)
    assert isinstance(found, Claim), found
    return found


def converted() -> Converted:
    return Converted(stored_file(".wav"), 61.5, source_is_playable=True)


def started(delay: float = 0) -> Started:
    return Started("operation-1", "An engine", delay)


def recognized(text: str = "Good morning.") -> Recognized:
    return Recognized(Transcript(text, (Segment(0.0, 1.5, text),)), "en")


def piece(number: int = 0) -> Piece:
    start = number * 300.0
    segments = (Segment(start, start + 2, f"Part {number}."),)
    return Piece(number, start, start + 300, "engine-a", "en", segments)


RESULTS = {
    State.CREATED: converted,
    State.CONVERTED: started,
    State.TRANSCRIBE: recognized,
}


def to_state(queue: Queue, state: State, now: datetime = START) -> Job:
    """A fresh job carried as far as an active state."""
    job = hand_in(queue, now)
    for before in (State.CREATED, State.CONVERTED):
        if queue.get(job.id).state is not state:
            taken = held(queue, before, now)
            assert taken.job.id == job.id
            assert queue.finish(taken, RESULTS[before](), now)
    assert queue.get(job.id).state is state
    return queue.get(job.id)
