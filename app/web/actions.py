"""What the API and the pages both do to a job."""

from app.errors import AppError
from app.job import Job
from app.web.services import now, services


def revive(job_id: str) -> Job:
    """Send a failed or dead job back to work; AppError source_missing when its file is gone."""
    queue, storage = services().queue, services().storage
    job = queue.get(job_id)
    if not storage.exists(queue.file(job.file)):
        raise AppError("source_missing")
    return queue.revive(job_id, now())
