"""What a step is given while it holds a job, and how it is told to end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.job import Job, Piece, StoredFile


class Stopped(Exception):  # noqa: N818 - not an error: the work was told to end
    """The work ended because stopped() said so: nothing is written and nobody is told."""


@dataclass(frozen=True)
class Snooze:
    """The step worked without failure and wants to be called again after a delay (P21)."""

    delay_seconds: float


@dataclass(frozen=True)
class Work:
    """One claimed job in the hands of a step.

    file is the job's current file. folder is this claim's own scratch directory on the
    storage's disk, removed when the step ends. report() writes progress (0-1) and renews the
    lease; call it as often as you like, it is written at most once a second. keep() stores a
    finished piece. intend() stores the name of an operation before it is begun elsewhere; Stopped
    when the claim is lost. stopped() turns True when the claim is lost, the job was cancelled or
    the worker stops: the step then kills its child within a second and raises Stopped.
    """

    job: Job
    file: StoredFile
    folder: Path
    report: Callable[[float], None]
    keep: Callable[[Piece, float], None]
    pieces: Callable[[str], Sequence[Piece]]
    intend: Callable[[str], None]
    stopped: Callable[[], bool]
