"""What the API and the pages both do to a job."""

from app import revival
from app.job import Job
from app.web.services import now, services


def revive(job_id: str) -> Job:
    """Send a failed or dead job back to work; AppError source_missing when its file is gone."""
    return revival.revive(services().queue, services().storage, job_id, now())
