"""`pisar jobs` and `pisar show`: the owner's console."""

import json
from collections.abc import Sequence
from typing import Any

import click

from app import liveness
from app.assembly import House, opened
from app.clock import to_rfc3339, to_text
from app.errors import KINDS, AppError
from app.intake import clean_name
from app.job import Job, State, Transcript
from app.queue.port import JobEvent, JobFilter, Queue
from app.settings import load
from app.transcripts import MEDIA_TYPES, render

_BIN = "bin"

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="For programs: JSON.")


@click.command()
@click.option(
    "--state",
    type=click.Choice([*(state.value for state in State), _BIN]),
    multiple=True,
    help="Only these; repeatable. The bin is listed alone.",
)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@JSON_OPTION
def jobs(state: tuple[str, ...], limit: int, as_json: bool) -> None:
    """List jobs, the newest first."""
    chosen = _filter(state)
    with opened(load(), liveness.COMMAND) as house:
        page = house.queue.page(chosen, before=None, limit=limit)
        if as_json:
            click.echo(json.dumps([_facts(job) for job in page.jobs], ensure_ascii=False, indent=2))
            return
        for job in page.jobs:
            click.echo(_row(job))
        if not page.jobs:
            click.echo("No jobs." if not state else "No jobs in this state.", err=True)
        if page.next_cursor is not None:
            click.echo(f"Older ones are not shown: --limit {limit * 10} shows more.", err=True)


@click.command()
@click.argument("job_id", metavar="ID")
@click.option(
    "--format", "form", type=click.Choice([*MEDIA_TYPES]), help="Print only the text, in this form."
)
@JSON_OPTION
def show(job_id: str, form: str | None, as_json: bool) -> None:
    """Show a job: its facts, what happened to it, and its text."""
    with opened(load(), liveness.COMMAND) as house:
        job = _job(house.queue, job_id)
        text = house.queue.transcript(job_id)
        if form:
            click.echo(rendered(job, text, form), nl=False)
            return
        events = house.queue.events(job_id)
        if as_json:
            click.echo(json.dumps(_everything(job, events, text), ensure_ascii=False, indent=2))
        else:
            _tell(house, job, events, text)


def rendered(job: Job, text: Transcript | None, form: str) -> str:
    """The text of a job in a form of MEDIA_TYPES; AppError not_done before there is any."""
    if text is None:
        raise AppError("not_done")
    language = job.detected_language or job.language
    return render(text, form, language=language, duration_seconds=job.duration_seconds)


def reason(job: Job) -> str:
    """Why a job ended without a text: the sentence of its error code."""
    kind = KINDS.get(job.error_code or "", KINDS["internal"])
    return kind.sentence


def no_job(queue: Queue, job_id: str) -> str:
    """Why a job is not found, and what to do."""
    if queue.find_binned(job_id):
        return "it is in the bin; `pisar undelete` brings it back while its time lasts"
    return "there is no such job; `pisar jobs` lists them"


def _filter(names: Sequence[str]) -> JobFilter:
    if _BIN not in names:
        return JobFilter(states=[State(name) for name in names])
    if set(names) != {_BIN}:
        raise click.UsageError("The bin is listed alone.")
    return JobFilter(is_deleted=True)


def _job(queue: Queue, job_id: str) -> Job:
    job = queue.find(job_id)
    if job is None:
        raise click.ClickException(f"{job_id}: {no_job(queue, job_id)}")
    return job


def _row(job: Job) -> str:
    length = _length(job.duration_seconds)
    note = f"  {job.error_code}" if job.error_code else ""
    name = clean_name(job.display_name)
    return f"{job.id}  {job.state:<10}  {to_text(job.created)[:19]}  {length:>8}  {name}{note}"


def _length(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _facts(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "state": job.state,
        "source": job.source,
        "name": job.display_name,
        "created": to_rfc3339(job.created),
        "updated": to_rfc3339(job.updated),
        "deleted": to_rfc3339(job.deleted) if job.deleted else None,
        "attempts": job.attempts,
        "progress": job.progress,
        "next_try": to_rfc3339(job.delay_time) if job.delay_time else None,
        "error": {"code": job.error_code, "message": reason(job)} if job.error_code else None,
        "language": job.detected_language or job.language,
        "duration": job.duration_seconds,
        "recognizer": job.recognizer,
    }


def _everything(job: Job, events: Sequence[JobEvent], text: Transcript | None) -> dict[str, Any]:
    history = [
        {
            "time": to_rfc3339(event.time),
            "state": event.state,
            "step": event.step,
            "attempt": event.attempt,
            "outcome": event.outcome,
            "error": event.error_code,
            "seconds": event.seconds,
        }
        for event in events
    ]
    spoken = json.loads(rendered(job, text, "json")) if text else {"text": None, "segments": []}
    return {
        **_facts(job),
        "history": history,
        "text": spoken["text"],
        "segments": spoken["segments"],
    }


def _tell(house: House, job: Job, events: Sequence[JobEvent], text: Transcript | None) -> None:
    is_paused = not job.is_running and job.step in house.queue.paused_steps()
    place = None if is_paused else house.queue.position(job)
    for label, value in {
        "Job": job.id,
        "Name": clean_name(job.display_name),
        "State": f"{job.state}, place {place} in line" if place else job.state,
        "Progress": f"{job.progress:.0%}" if job.state.is_active and job.progress else None,
        "Handed in": f"{to_text(job.created)} by {job.source}",
        "Length": _length(job.duration_seconds) if job.duration_seconds else None,
        "Language": job.detected_language or job.language,
        "Engine": job.recognizer,
        "Attempts": f"{job.attempts} of {house.settings.worker.max_attempts}",
        "Next try": to_text(job.delay_time) if job.delay_time and not is_paused else None,
        "Reason": reason(job) if job.error_code else None,
    }.items():
        if value:
            click.echo(f"{label + ':':<11}{value}")
    if is_paused:
        click.echo(f"Waiting:   step {job.step} is paused; `pisar resume {job.step}` ends that")
    if job.state.is_active and not house.workers_alive():
        click.echo("Waiting:   no worker is running; `pisar up` or `pisar worker` starts one")
    click.echo("History:")
    for event in events:
        click.echo(f"  {to_text(event.time)}  {_event(event)}")
    if text:
        click.echo("\n" + (rendered(job, text, "txt") or "(no speech found)\n"), nl=False)


def _event(event: JobEvent) -> str:
    parts = [event.outcome, str(event.step or event.state)]
    if event.attempt:
        parts.append(f"attempt {event.attempt}")
    if event.seconds is not None:
        parts.append(f"{event.seconds:.1f} s")
    if event.error_code:
        parts.append(event.error_code)
    return "  ".join(parts)
