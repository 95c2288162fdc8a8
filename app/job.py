"""The job: its states, its columns and the moves between states."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

RETRY_CAP_SECONDS = 300


class State(StrEnum):
    """Where a job is; the list is closed by a CHECK in the schema."""

    CREATED = "created"
    CONVERTED = "converted"
    TRANSCRIBE = "transcribe"
    DONE = "done"
    FAILED = "failed"
    DEAD = "dead"

    @property
    def is_active(self) -> bool:
        """True while a worker has still something to do."""
        return self in ACTIVE

    @property
    def is_end(self) -> bool:
        """True when nothing more happens by itself."""
        return self not in ACTIVE


ACTIVE = (State.CREATED, State.CONVERTED, State.TRANSCRIBE)
ENDS = (State.DONE, State.FAILED, State.DEAD)
REVIVABLE = (State.FAILED, State.DEAD)


class Source(StrEnum):
    """How a recording came in."""

    API = "api"
    WEB = "web"
    TELEGRAM = "telegram"
    UNKNOWN = "unknown"


class Step(StrEnum):
    """The work a state waits for."""

    CONVERT = "convert"
    RECOGNIZE = "recognize"
    CHECK = "check"


STEP_OF = {
    State.CREATED: Step.CONVERT,
    State.CONVERTED: Step.RECOGNIZE,
    State.TRANSCRIBE: Step.CHECK,
}


@dataclass(frozen=True)
class Job:
    """A row of transcribe_jobs: field names are column names, in the schema's order (S07).

    Times are UTC; None means not set. `file` is the current file: a step moves it to its own
    result, while `source_file` stays what the sender handed in. duration_seconds is the decoded
    length. language is what the sender chose (None: detect), detected_language what was heard.
    ended_from is the active state that a failed or dead job ended in. progress is 0-1. The order
    in line is (priority, highest first; turn; seq). polls counts the checks of an operation that
    still ran; recognition_intent names one that is being started. deleted: in the bin since then.
    """

    seq: int
    id: str
    state: State
    source: Source
    display_name: str
    language: str | None
    source_file: str
    file: str
    delay_time: datetime | None
    acquisition_id: str | None
    acquire_time: datetime | None
    worker: str | None
    attempts: int
    recognition_op_id: str | None
    progress: float | None
    duration_seconds: float | None
    detected_language: str | None
    recognizer: str | None
    playable_file: str | None
    error_code: str | None
    error_text: str | None
    ended_from: State | None
    sender: str | None
    dedupe_key: str | None
    dedupe_digest: str | None
    tg_chat_id: int | None
    tg_reply_message_id: int | None
    created: datetime
    updated: datetime
    priority: int
    turn: int
    polls: int
    recognition_intent: str | None
    deleted: datetime | None

    @property
    def step(self) -> Step | None:
        """The step this job waits for or is in; None in an end state."""
        return STEP_OF.get(self.state)

    @property
    def is_running(self) -> bool:
        """True while a worker holds it."""
        return self.acquisition_id is not None


@dataclass(frozen=True)
class StoredFile:
    """A row of `files`: one physical copy (20-storage); size in bytes, sha256 in hex."""

    id: str
    file: str
    size: int
    sha256: str | None
    media_type: str
    location: str = "local"
    object_key: str = ""


@dataclass(frozen=True)
class Segment:
    """A stretch of speech: seconds from the start of the recording, and its text."""

    start: float
    end: float
    text: str
    speaker: str | None = None


@dataclass(frozen=True)
class Transcript:
    """The text of a job; empty text and no segments mean that no speech was found."""

    text: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Piece:
    """A finished part of a recognition, kept so that a killed worker goes on from the last one.

    start and end are seconds in the converted recording; engine names the configuration that
    made it, so that pieces of different engines are never mixed.
    """

    number: int
    start: float
    end: float
    engine: str
    language: str | None
    segments: tuple[Segment, ...]


def backoff_seconds(attempts: int, cap_seconds: float = RETRY_CAP_SECONDS) -> float:
    """Seconds to wait before the next try: 1, 2, 4 ... up to the cap (P20).

    attempts counts claims, so it is at least 1.
    """
    if attempts < 1:
        raise ValueError("a job that was never claimed has no pause")
    # 2**62 is beyond any cap: a larger power would only cost time.
    return float(min(2 ** min(attempts - 1, 62), cap_seconds))
