"""How a job stands, in words for its sender: what it does, and what keeps it waiting."""

from dataclasses import dataclass
from datetime import datetime

from flask_babel import gettext

from app.job import Job, State
from app.web.services import services


@dataclass(frozen=True)
class WaitingFor:
    """What keeps a job waiting: a code for programs and a sentence in the reader's language."""

    code: str
    sentence: str


@dataclass(frozen=True)
class Standing:
    """The facts that a job's row alone does not tell.

    stage is "convert", "recognize" or None in an end state. progress is 0-1. position is 1-based
    while the job is in line. next_try is set while a pause keeps it.
    """

    stage: str | None
    progress: float | None
    position: int | None
    next_try: datetime | None
    waiting_for: WaitingFor | None


def standing(job: Job, now: datetime) -> Standing:
    """How a job stands at this moment; a paused step promises neither a time nor a place."""
    is_idle = job.state.is_active and not job.is_running
    is_paused = is_idle and job.step in services().queue.paused_steps()
    pause_ends = job.delay_time if is_idle and not is_paused else None
    next_try = pause_ends if pause_ends and pause_ends > now else None
    waits = is_idle and not is_paused and next_try is None
    position = services().queue.position(job) if waits else None
    return Standing(
        stage=stage(job),
        progress=1.0 if job.state is State.DONE else job.progress,
        position=position,
        next_try=next_try,
        waiting_for=(
            WaitingFor("step_paused", gettext("The owner has paused this step."))
            if is_paused
            else _waiting_for(job, position, next_try)
        ),
    )


def stage(job: Job) -> str | None:
    """What is being done or comes next; asking an engine for its result is recognizing too."""
    if not job.state.is_active:
        return None
    return "convert" if job.state is State.CREATED else "recognize"


def _waiting_for(job: Job, position: int | None, next_try: datetime | None) -> WaitingFor | None:
    if not job.state.is_active:
        return None
    # Said first, and of a job in hand too: its worker may be gone, and then nothing moves.
    if services().workers_alive() == 0:
        return WaitingFor("no_worker", gettext("No worker is running. It starts with `pisar up`."))
    if next_try and job.attempts:
        return WaitingFor("retry_pause", gettext("The last try failed. Pausing before the next."))
    if next_try:
        return WaitingFor("engine", gettext("The speech engine is at work."))
    if job.is_running:
        return None
    if position is None:
        # Its pause is over; the next claim puts it back into the line.
        return WaitingFor("line", gettext("In line."))
    return WaitingFor("line", gettext("In line, number %(position)d.", position=position))
