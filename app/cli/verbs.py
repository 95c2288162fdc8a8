"""`pisar revive`, `cancel`, `delete`, `undelete`, `pause` and `resume`: the owner's verbs."""

from collections.abc import Callable, Iterable, Iterator

import click

from app import liveness
from app.assembly import House, opened
from app.cli.jobs import no_job
from app.clock import to_text, utcnow
from app.errors import AppError
from app.job import REVIVABLE, State, Step
from app.process import EXIT_FAILED
from app.queue.port import JobFilter, Queue
from app.revival import ends_alike
from app.revival import revive as revive_job
from app.settings import load

_PAGE = 200
_STEP = click.argument("step", metavar="STEP", type=click.Choice([step.value for step in Step]))
_IDS = click.argument("job_ids", metavar="ID...", nargs=-1, required=True)


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
    with opened(load(), liveness.COMMAND) as house:
        chosen = _all_in(house.queue, State(state)) if state else job_ids
        return _each(house, chosen, _revive)


@click.command()
@_IDS
def cancel(job_ids: tuple[str, ...]) -> int:
    """Stop jobs that wait or run.

    A running step ends within a second or two. What is cancelled can be revived.
    """
    with opened(load(), liveness.COMMAND) as house:
        return _each(house, job_ids, _cancel)


@click.command()
@_IDS
def delete(job_ids: tuple[str, ...]) -> int:
    """Put jobs into the bin.

    One that waits or runs is cancelled first. They stay there for retention.bin_days; until then
    `pisar undelete` brings them back.
    """
    with opened(load(), liveness.COMMAND) as house:
        return _each(house, job_ids, _delete)


@click.command()
@_IDS
def undelete(job_ids: tuple[str, ...]) -> int:
    """Bring jobs back from the bin.

    Each is as it was when it went in. `pisar jobs --state bin` lists them.
    """
    with opened(load(), liveness.COMMAND) as house:
        return _each(house, job_ids, _undelete)


@click.command()
@_STEP
def pause(step: str) -> None:
    """Hand out no more jobs for a step.

    The steps are convert, recognize and check, where the built-in engine works. Running jobs go
    on; waiting ones keep their places, over restarts too, until `pisar resume`.
    """
    with opened(load(), liveness.COMMAND) as house:
        if house.queue.pause_step(Step(step), utcnow()):
            click.echo(f"{step}: paused")
        else:
            since = house.queue.paused_steps().get(Step(step))
            click.echo(f"{step}: paused already" + (f", since {to_text(since)}" if since else ""))


@click.command()
@_STEP
def resume(step: str) -> None:
    """Hand out jobs for a paused step again."""
    with opened(load(), liveness.COMMAND) as house:
        was_paused = house.queue.resume_step(Step(step))
    click.echo(f"{step}: resumed" if was_paused else f"{step}: was not paused")


def _each(house: House, job_ids: Iterable[str], verb: Callable[[House, str], str]) -> int:
    """Do something to each job and say what came of it; 1 when any could not be done."""
    code = 0
    for job_id in job_ids:
        try:
            done = verb(house, job_id)
        except AppError as error:
            click.echo(f"{job_id}: {_reason(house, job_id, error)}", err=True)
            code = EXIT_FAILED
        else:
            click.echo(f"{job_id}: {done}")
    return code


def _revive(house: House, job_id: str) -> str:
    before = house.queue.find(job_id)
    job = revive_job(house.queue, house.storage, job_id, utcnow())
    if before and ends_alike(before):
        words = "the verdict was on the recording itself; expect the same again"
        click.echo(f"{job_id}: {words}", err=True)
    return job.state


def _cancel(house: House, job_id: str) -> str:
    job = house.queue.cancel(job_id, utcnow())
    return f"cancelled in {job.ended_from}"


def _delete(house: House, job_id: str) -> str:
    before = house.queue.find(job_id)
    house.queue.delete(job_id, utcnow())
    is_active = before is not None and before.state.is_active
    return "cancelled, in the bin" if is_active else "in the bin"


def _undelete(house: House, job_id: str) -> str:
    bin_seconds = house.settings.retention.bin_seconds
    return house.queue.undelete(job_id, bin_seconds, utcnow()).state


def _reason(house: House, job_id: str, error: AppError) -> str:
    if error.code == "not_found":
        return no_job(house.queue, job_id)
    if error.code == "wrong_state":
        return f"nothing done: {error.detail}"
    return error.message


def _all_in(queue: Queue, state: State) -> Iterator[str]:
    """The ids of a state, page by page: the cursor goes on whatever becomes of the jobs."""
    chosen, before = JobFilter(states=(state,)), None
    while True:
        page = queue.page(chosen, before=before, limit=_PAGE)
        yield from [job.id for job in page.jobs]
        before = page.next_cursor
        if before is None:
            return
