"""Rows of the store as objects, and back; the list of a job's columns is Job's own (S07)."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, Protocol

from app.clock import from_text
from app.job import Job, Piece, Segment, Source, State, Step, StoredFile, Transcript
from app.queue.port import JobEvent

_JOB_FIELDS = tuple(field.name for field in fields(Job))
JOB_COLUMNS = ", ".join(_JOB_FIELDS)

_TIMES = ("delay_time", "acquire_time", "created", "updated", "deleted")
_CONVERSIONS: Sequence[tuple[int, Callable[[Any], Any]]] = (
    *((_JOB_FIELDS.index(name), from_text) for name in _TIMES),
    (_JOB_FIELDS.index("state"), State),
    (_JOB_FIELDS.index("source"), Source),
    (_JOB_FIELDS.index("ended_from"), State),
)


class Row(Protocol):
    """What is read from a row: a value by its column's name."""

    def __getitem__(self, column: str, /) -> Any: ...


def job(row: Iterable[Any]) -> Job:
    """The job that a row of transcribe_jobs holds, whose columns begin with JOB_COLUMNS."""
    # By place, not by name: each claim reads a job, and this is a third of the cost.
    values = [*row][: len(_JOB_FIELDS)]
    for place, made_of in _CONVERSIONS:
        if values[place] is not None:
            values[place] = made_of(values[place])
    return Job(*values)


def stored_file(row: Row) -> StoredFile:
    """The file that a row of files holds."""
    return StoredFile(**{field.name: row[field.name] for field in fields(StoredFile)})


def event(row: Row) -> JobEvent:
    """The event that a row of job_events holds."""
    return JobEvent(
        time=from_text(row["time"]),
        state=State(row["state"]),
        step=Step(row["step"]) if row["step"] else None,
        worker=row["worker"],
        attempt=row["attempt"],
        outcome=row["outcome"],
        error_code=row["error_code"],
        error_text=row["error_text"],
        seconds=row["seconds"],
    )


def piece(row: Row) -> Piece:
    """The piece that a row of transcript_pieces holds."""
    return Piece(
        number=row["number"],
        start=row["start_seconds"],
        end=row["end_seconds"],
        engine=row["engine"],
        language=row["language"],
        segments=_segments(row["segments"]),
    )


def transcript(row: Row) -> Transcript:
    """The text that a row of transcripts holds."""
    return Transcript(row["transcription_text"], _segments(row["segments"]))


def segments_json(segments: Sequence[Segment]) -> str:
    """The stored form of segments: a JSON list of objects."""
    return json.dumps([vars(segment) for segment in segments], ensure_ascii=False)


def _segments(text: str) -> tuple[Segment, ...]:
    return tuple(Segment(**item) for item in json.loads(text))
