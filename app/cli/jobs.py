"""`pisar jobs`, `show` and `revive`: the owner's console."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from app import liveness
from app.assembly import House, opened
from app.clock import to_rfc3339, to_text, utcnow
from app.errors import KINDS, AppError
from app.intake import clean_name
from app.job import REVIVABLE, Job, State, Transcript
from app.process import EXIT_FAILED
from app.queue.port import JobEvent, JobFilter, Queue
from app.revival import revive as revive_job
from app.settings import load
from app.transcripts import MEDIA_TYPES, render

_PAGE = 200
_NO_JOB = "there is no such job; `pisar jobs` lists them"

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="For programs: JSON.")


@click.command()
@click.option(
    "--state",
    type=click.Choice([state.value for state in State]),
    multiple=True,
    help="Only these; repeatable.",
)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@JSON_OPTION
def jobs(state: tuple[str, ...], limit: int, as_json: bool) -> None:
    """List jobs, the newest first."""
    with opened(load(), liveness.COMMAND) as house:
        page = house.queue.page(
            JobFilter(states=[State(name) for name in state]), before=None, limit=limit
        )
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


@click.command()
@click.argument("job_ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--state",
    type=click.Choice([state.value for state in REVIVABLE]),
    help="Revive every job in this state.",
)
def revive(job_ids: tuple[str, ...], state: str | None) -> int:
    """Set failed or dead jobs going again.

    Each goes on from the step it ended in, with fresh attempts.
    """
    if bool(job_ids) == (state is not None):
        raise click.UsageError("Name either the jobs or a --state.")
    code = 0
    with opened(load(), liveness.COMMAND) as house:
        chosen = _all_in(house.queue, State(state)) if state else job_ids
        for job_id in chosen:
            try:
                job = revive_job(house.queue, house.storage, job_id, utcnow())
            except AppError as error:
                words = _NO_JOB if error.code == "not_found" else error.message
                click.echo(f"{job_id}: {words}", err=True)
                code = EXIT_FAILED
            else:
                click.echo(f"{job_id}: {job.state}")
    return code


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


def _job(queue: Queue, job_id: str) -> Job:
    try:
        return queue.get(job_id)
    except AppError as error:
        if error.code != "not_found":
            raise
    raise click.ClickException(f"{job_id}: {_NO_JOB}")


def _all_in(queue: Queue, state: State) -> Iterator[str]:
    """The ids of a state, page by page: the cursor goes on whatever becomes of the jobs."""
    chosen, before = JobFilter(states=(state,)), None
    while True:
        page = queue.page(chosen, before=before, limit=_PAGE)
        yield from [job.id for job in page.jobs]
        before = page.next_cursor
        if before is None:
            return


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
    place = house.queue.position(job)
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
        "Next try": to_text(job.delay_time) if job.delay_time else None,
        "Reason": reason(job) if job.error_code else None,
    }.items():
        if value:
            click.echo(f"{label + ':':<11}{value}")
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
