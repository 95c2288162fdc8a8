"""How long work shows: a bar on a terminal, plain lines elsewhere, always on standard error."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import click

from app.job import Job, State

_PARTS = 1000
_CONVERT_SHARE = 0.05
"""About how much of the work the conversion is: a fraction of a second to many of recognition."""

_WORDS = {
    State.CREATED: "converting",
    State.CONVERTED: "recognizing",
    State.TRANSCRIBE: "recognizing",
    State.DONE: "done",
    State.FAILED: "failed",
    State.DEAD: "given up",
}


class Progress:
    """The progress of some jobs; a context manager, since a bar must be closed."""

    def __init__(self, count: int) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._told: dict[str, str] = {}
        self._bar = click.progressbar(
            length=count * _PARTS, file=sys.stderr, show_pos=False, item_show_func=lambda item: item
        )

    def __enter__(self) -> Self:
        if self._on_terminal:
            self._bar.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._on_terminal:
            self._bar.__exit__(kind, error, trace)

    def show(self, jobs: Sequence[tuple[str, Job]]) -> None:
        """Show where the jobs are; each comes with the name that its file has here."""
        if self._on_terminal:
            current = next((pair for pair in jobs if pair[1].state.is_active), jobs[-1])
            reached = round(sum(_fraction(job) for _, job in jobs) * _PARTS)
            # A job that is tried again goes back; the bar takes steps in both directions.
            self._bar.update(reached - self._bar.pos, f"{current[0]}: {_stage(current[1])}")
            return
        for name, job in jobs:
            stage = _stage(job)
            if self._told.get(job.id) != stage:
                self._told[job.id] = stage
                click.echo(f"{name}: {stage}", err=True)


def _stage(job: Job) -> str:
    if job.delay_time and job.error_code:
        return f"will be tried again, attempt {job.attempts + 1}"
    if job.state is State.CREATED and not job.is_running:
        return "waiting"
    return _WORDS[job.state]


def _fraction(job: Job) -> float:
    if job.state.is_end:
        return 1.0
    if job.state is State.CREATED:
        return (job.progress or 0.0) * _CONVERT_SHARE
    return _CONVERT_SHARE + (job.progress or 0.0) * (1 - _CONVERT_SHARE)
