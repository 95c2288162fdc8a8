"""The recognizer's contract: start an operation, then ask for it until it answers.

An external service answers Pending many times (P21). A local engine does its work inside
poll(), piece by piece, under the long lease that it declares.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.errors import AppError
from app.job import Transcript
from worker.work import Work


@dataclass(frozen=True)
class Audio:
    """A converted recording: 16 kHz mono s16 WAV; language is ISO 639-1, None to detect it."""

    path: Path
    duration_seconds: float
    language: str | None


@dataclass(frozen=True)
class Pending:
    """The operation is still running; ask again after the delay."""

    delay_seconds: float


@dataclass(frozen=True)
class Result:
    """The text, and the language that was heard (ISO 639-1) where the engine tells."""

    transcript: Transcript
    language: str | None


@dataclass(frozen=True)
class Refused:
    """The engine's verdict on this recording: the job fails for good."""

    error: AppError


class Recognizer(Protocol):
    """A speech engine. Failures that another try may mend are raised as AppError."""

    @property
    def name(self) -> str:
        """Which engine and model, and so which kept pieces fit: stored with each piece."""

    @property
    def label(self) -> str:
        """The engine's name for people, as shown beside a result; a proper name, not translated."""

    @property
    def lease_seconds(self) -> float:
        """How long a claim in the state `transcribe` is honoured while this engine works."""

    @property
    def first_check_delay_seconds(self) -> float:
        """How long after start() the first poll() comes."""

    @property
    def languages(self) -> Sequence[str]:
        """The ISO 639-1 codes a sender may choose from."""

    def find(self, intent: str) -> str | None:
        """The id of the operation that an earlier start() with this intent began.

        None when none was begun, or when the engine cannot tell: then start() comes again with
        the same intent, so that one that takes idempotency keys begins nothing twice.
        """

    def start(self, audio: Audio, intent: str) -> str:
        """Begin, and give the operation's id; intent is this operation's own name, kept before."""

    def poll(self, operation_id: str, audio: Audio, work: Work) -> Pending | Result | Refused:
        """Ask for the operation; a local engine does the whole work here.

        A local engine takes up work.pieces(self.name), stores each new piece by work.keep(),
        reports progress, and raises Stopped soon after work.stopped() turns True.
        """

    def close(self) -> None:
        """End the engine's processes."""
