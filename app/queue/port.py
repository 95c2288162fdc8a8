"""The queue's contract, verb by verb; docs/architecture.md draws the states.

Every verb takes the present moment as `now`. A verb that takes a Claim writes only while that
claim is still the job's own, sets only the columns its step owns (P08, P09), and answers False
when the claim is lost: the caller then stops without a word to the sender.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from app.errors import AppError
from app.job import Job, Piece, Source, State, Step, StoredFile, Transcript


@dataclass(frozen=True)
class NewJob:
    """What intake hands over: the stored source and what the sender said of it.

    sender names who hands in ("owner:…", "token:…", "anonymous"), for taking turns and for finding
    the same bytes again. dedupe_key makes a repeat give the same job (P46); dedupe_digest says
    whether a repeat carries the same content. With reuse_same_bytes, a job of the same sender
    with the same bytes is given back instead of a second one. A higher priority goes first.
    """

    file: StoredFile
    source: Source
    display_name: str
    language: str | None = None
    sender: str | None = None
    dedupe_key: str | None = None
    dedupe_digest: str | None = None
    reuse_same_bytes: bool = False
    tg_chat_id: int | None = None
    tg_reply_message_id: int | None = None
    priority: int = 0


@dataclass(frozen=True)
class Enqueued:
    """The job that stands for a hand-in; created is False when it stood there already.

    same_bytes is True when it was found by its content rather than by its key.
    """

    job: Job
    created: bool
    same_bytes: bool = False


@dataclass(frozen=True)
class Claim:
    """A worker's hold on a job: the job as it was when claimed, and the fresh token."""

    job: Job
    step: Step
    acquisition_id: str
    worker: str
    claimed_at: datetime


@dataclass(frozen=True)
class Buried:
    """A claim found the attempts spent and moved the job to `dead` (P14)."""

    job: Job


@dataclass(frozen=True)
class Nothing:
    """There is no work in this state right now: a value, never an exception (P01-P03)."""

    note: str


@dataclass(frozen=True)
class Converted:
    """The convert step's columns: its file and the decoded length in seconds.

    playable is the file a browser can play and seek in: the source or the converted copy.
    """

    file: StoredFile
    duration_seconds: float
    source_is_playable: bool


@dataclass(frozen=True)
class Started:
    """The recognize step's columns; the first check comes after the delay."""

    recognition_op_id: str
    recognizer: str
    check_delay_seconds: float


@dataclass(frozen=True)
class Recognized:
    """The check step's columns."""

    transcript: Transcript
    detected_language: str | None


StepResult = Converted | Started | Recognized


@dataclass(frozen=True)
class JobEvent:
    """What happened to a job and when; seconds is how long the step ran."""

    time: datetime
    state: State
    step: Step | None
    worker: str | None
    attempt: int
    outcome: str
    error_code: str | None
    error_text: str | None
    seconds: float | None


@dataclass(frozen=True)
class JobFilter:
    """Which jobs a list shows; no states mean any. What lies in the bin is shown alone."""

    states: Sequence[State] = field(default_factory=tuple)
    is_deleted: bool = False


@dataclass(frozen=True)
class JobPage:
    """A page of a list, newest first; next_cursor is the seq to go on before, None at the end."""

    jobs: Sequence[Job]
    next_cursor: int | None


class Queue(Protocol):
    """One truth for every door and every worker."""

    def enqueue(self, new: NewJob, now: datetime) -> Enqueued:
        """Commit the file row and the job row, durably, or give the job that stands there.

        A key used before for other content is AppError idempotency_conflict.
        """

    def claim(
        self, state: State, *, worker: str, lease_seconds: float, max_attempts: int, now: datetime
    ) -> Claim | Buried | Nothing:
        """Take the first ready job of a state; pauses and leases that ended count as ready.

        The order is (priority, turn, acceptance), P50. A paused step has nothing to do.
        """

    def report(self, claim: Claim, progress: float | None, now: datetime) -> bool:
        """Write progress (0-1) and renew the lease (P43)."""

    def save_piece(self, claim: Claim, piece: Piece, progress: float, now: datetime) -> bool:
        """Keep a finished piece of the recognition, with progress and lease as report() does."""

    def pieces(self, job_id: str, engine: str) -> Sequence[Piece]:
        """The kept pieces of a job that this engine made, in order."""

    def intend(self, claim: Claim, intent: str, now: datetime) -> bool:
        """Name the operation that is about to be started, so that it can be looked up later."""

    def finish(self, claim: Claim, result: StepResult, now: datetime) -> bool:
        """Write a step's result and move the job on; attempts go back to 0 (P13)."""

    def snooze(self, claim: Claim, delay_seconds: float, now: datetime) -> bool:
        """Give the job back for its next check: a run without failure, attempts back to 0 (P21)."""

    def retry(self, claim: Claim, error: AppError, delay_seconds: float, now: datetime) -> bool:
        """Give the job back after a failure, not to be handed out before the pause ends (P20)."""

    def fail(self, claim: Claim, error: AppError, now: datetime) -> bool:
        """End the job by a step's verdict (`failed`, P17)."""

    def release(self, claim: Claim, now: datetime) -> bool:
        """Give the job back unworked, without costing an attempt (P44)."""

    def release_lost(self, is_gone: Callable[[str], bool], now: datetime) -> Sequence[Job]:
        """Free the claims of workers proven gone; the attempt stays counted (P41)."""

    def revive(self, job_id: str, now: datetime, *, from_source: bool = False) -> Job:
        """Return a failed or dead job to the state it ended in, with fresh attempts (P15).

        With from_source it goes back to the first state and to what the sender handed in.
        A reply not yet begun is not sent: it goes on. AppError not_found, or wrong_state when
        it is in no such end.
        """

    def cancel(self, job_id: str, now: datetime) -> Job:
        """End an active job as `failed` with the code `cancelled` (P48).

        AppError not_found, or wrong_state when it has ended already.
        """

    def delete(self, job_id: str, now: datetime) -> Job:
        """Put a job into the bin; an active one is cancelled first (S31).

        Its text is not sent while it lies there; that it was cancelled is. AppError not_found.
        """

    def undelete(self, job_id: str, bin_seconds: float, now: datetime) -> Job:
        """Take a job out of the bin, as it was when it went in.

        AppError not_found once its time in the bin is over, wrong_state when it is not there.
        """

    def binned(
        self, bin_seconds: float, limit: int, now: datetime, *, after: int = 0
    ) -> Sequence[Job]:
        """Some jobs whose time in the bin is over, oldest first, those after a seq."""

    def files_of(self, job_id: str) -> Sequence[StoredFile]:
        """All copies of a job's recording."""

    def erase(self, job_id: str, bin_seconds: float, now: datetime) -> bool:
        """Remove the rows of a job whose time in the bin is over; its files must be gone already.

        False when there is no such job.
        """

    def pause_step(self, step: Step, now: datetime) -> bool:
        """Hand out no more jobs for a step; running ones go on. False: it was paused already."""

    def resume_step(self, step: Step) -> bool:
        """Hand out jobs for a step again. False: it was not paused."""

    def paused_steps(self) -> dict[Step, datetime]:
        """The paused steps, and since when."""

    def get(self, job_id: str) -> Job:
        """The job, or AppError not_found: what lies in the bin is not found."""

    def find(self, job_id: str) -> Job | None:
        """The job, or None when there is none."""

    def find_binned(self, job_id: str) -> Job | None:
        """The job when it lies in the bin, or None."""

    def file(self, file_id: str) -> StoredFile:
        """The file row, or AppError not_found."""

    def shown_file(self, file_id: str) -> StoredFile:
        """The row of a file of a job that is not in the bin, or AppError not_found."""

    def transcript(self, job_id: str) -> Transcript | None:
        """The text with its segments; None before the job is done."""

    def events(self, job_id: str) -> Sequence[JobEvent]:
        """What happened to the job, oldest first."""

    def page(self, chosen: JobFilter, *, before: int | None, limit: int) -> JobPage:
        """A page of jobs, newest first, before a cursor."""

    def counts(self) -> dict[State, int]:
        """How many jobs are in each state; costs the same at any depth."""

    def position(self, job: Job) -> int | None:
        """The 1-based place in line of a job that is ready; None for one that is not waiting."""

    def oldest_waiting(self) -> dict[State, datetime]:
        """When the oldest waiting job of each active state that has any was accepted."""
