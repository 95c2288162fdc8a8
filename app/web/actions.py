"""What the API and the pages both do: the owner's verbs on a job and on a step."""

from collections.abc import Callable

from app import revival
from app.errors import AppError
from app.job import Job, Step
from app.web import told
from app.web.services import now, services


def revive(job_id: str) -> Job:
    """Send a failed or dead job back to work; AppError source_missing when its file is gone."""
    return revival.revive(services().queue, services().storage, job_id, now())


def cancel(job_id: str) -> Job:
    """End a job that waits or runs."""
    return services().queue.cancel(job_id, now())


def delete(job_id: str) -> Job:
    """Put a job into the bin; one that waits or runs is cancelled first."""
    return services().queue.delete(job_id, now())


def undelete(job_id: str) -> Job:
    """Take a job out of the bin while its time there is not over."""
    return services().queue.undelete(job_id, services().settings.retention.bin_seconds, now())


def pause(name: str) -> Step:
    """Let nothing new into a step; AppError not_found when there is no such step."""
    step = _step(name)
    services().queue.pause_step(step, now())
    return step


def resume(name: str) -> Step:
    """Let jobs into a step again; AppError not_found when there is no such step."""
    step = _step(name)
    services().queue.resume_step(step)
    return step


VERBS: dict[str, Callable[[str], Job]] = {
    "revive": revive,
    "cancel": cancel,
    "delete": delete,
    "undelete": undelete,
    "send_again": told.send_again,
}
"""The verbs on a job, by name."""


def _step(name: str) -> Step:
    try:
        return Step(name)
    except ValueError:
        raise AppError("not_found") from None
