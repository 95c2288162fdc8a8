"""Hands things in and moves jobs on, by the verbs that the doors and the worker use."""

import io
import wave
from datetime import datetime

from app.assembly import House
from app.errors import AppError
from app.job import Job, Segment, Source, State, Transcript
from app.queue.port import Claim, Converted, Recognized, Started


def sound(seconds: float = 0.01) -> bytes:
    """A small WAV; nobody listens to it here."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(b"\0\1" * int(8000 * seconds))
    return file.getvalue()


def hand_in(
    house: House, now: datetime, data: bytes | None = None, name: str = "interview.wav"
) -> Job:
    draft = house.intake.draft()
    draft.write(sound() if data is None else data)
    return house.intake.accept(
        draft, source=Source.API, display_name=name, language=None, sender="anonymous", now=now
    ).job


def claim(house: House, state: State, now: datetime, attempts: int = 5) -> Claim:
    found = house.queue.claim(
        state, worker="worker-test", lease_seconds=3600, max_attempts=attempts, now=now
    )
    assert isinstance(found, Claim)
    return found


def convert(house: House, now: datetime) -> None:
    """The oldest new job is converted; its source is what a browser plays."""
    held = claim(house, State.CREATED, now)
    copy = house.storage.copy(house.queue.file(held.job.file))
    assert house.queue.finish(held, Converted(copy, 1.5, source_is_playable=True), now)


def finish(house: House, now: datetime, text: str = "Good morning.") -> None:
    """The oldest new job goes all the way."""
    convert(house, now)
    held = claim(house, State.CONVERTED, now)
    assert house.queue.finish(held, Started("op", "embedded", 0), now)
    held = claim(house, State.TRANSCRIBE, now)
    segments = (Segment(0.0, 1.5, text),) if text else ()
    assert house.queue.finish(held, Recognized(Transcript(text, segments), "en"), now)


def fail(house: House, now: datetime, code: str = "not_media") -> None:
    """The oldest new job ends by a verdict."""
    assert house.queue.fail(claim(house, State.CREATED, now), AppError(code), now)


def stored_files(house: House) -> list[str]:
    """Every file of the data directory that a recording could have left."""
    data_dir = house.settings.storage.data_dir
    found = [*(data_dir / "storage").rglob("*"), *(data_dir / "tmp").rglob("*")]
    return sorted(str(path.relative_to(data_dir)) for path in found if path.is_file())
