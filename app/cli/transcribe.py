"""`pisar transcribe`: hand files to the queue, wait for them, print their text."""

import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from app import liveness, process
from app.assembly import House, opened
from app.cli.jobs import reason, rendered
from app.cli.progress import Progress
from app.clock import utcnow
from app.errors import AppError
from app.intake import COMMAND, check_language
from app.job import Job, Source, State
from app.process import EXIT_BAD_SETTINGS, EXIT_FAILED, EXIT_INTERRUPTED
from app.settings import Settings, load
from app.storage.port import Draft
from app.transcripts import MEDIA_TYPES

_LOOK_SECONDS = 0.2
_BLOCK_BYTES = 1 << 20
_EARLY_ENDS = 3
"""After so many ends of our own worker in a row something is wrong with the machine."""


@dataclass
class Errand:
    """A file that was handed in: its job as last seen."""

    path: Path
    job: Job


def _known(context: click.Context, option: click.Parameter, language: str | None) -> str | None:
    try:
        check_language(language)
    except AppError as error:
        raise click.BadParameter(error.message, context, option) from None
    return language


@click.command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
)
@click.option(
    "--language", callback=_known, help="The spoken language, as in ru; found out when not said."
)
@click.option(
    "--format",
    "form",
    type=click.Choice([*MEDIA_TYPES]),
    default="txt",
    show_default=True,
    help="The form of the text.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the texts into this folder, named after the files.",
)
def transcribe(
    files: tuple[Path, ...], language: str | None, form: str, output: Path | None
) -> int:
    """Turn recordings into text.

    They go to the queue of the data directory like any others; a worker is started when none
    runs, and ends with this command. The text goes to standard output, or with -o into files.
    The exit code is 1 when a recording gave no text; the reason is on standard error.
    """
    settings = load()
    if output:
        output.mkdir(parents=True, exist_ok=True)
    with opened(settings, liveness.COMMAND) as house:
        errands, code = _hand_in(house, files, language)
        interrupted = not _wait(house, errands)
        code = max(code, _deliver(house, errands, form, output))
    return EXIT_INTERRUPTED if interrupted else code


def _hand_in(house: House, files: Sequence[Path], language: str | None) -> tuple[list[Errand], int]:
    """Hand every file in; one that is refused is named, and gives the exit code 1."""
    errands, code = [], 0
    for path in files:
        try:
            errands.append(Errand(path, _accept(house, path, language)))
        except AppError as error:
            click.echo(f"{path}: {error.message}", err=True)
            code = EXIT_FAILED
        except OSError as error:
            click.echo(f"{path}: {error.strerror}", err=True)
            code = EXIT_FAILED
    return errands, code


def _accept(house: House, path: Path, language: str | None) -> Job:
    draft = house.intake.draft()
    try:
        _fill(draft, path)
    except BaseException:
        draft.discard()
        raise
    enqueued = house.intake.accept(
        draft,
        source=Source.API,
        display_name=path.name,
        language=language,
        sender=COMMAND,
        now=utcnow(),
    )
    return enqueued.job


def _fill(draft: Draft, path: Path) -> None:
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            draft.write(block)


def _wait(house: House, errands: Sequence[Errand]) -> bool:
    """Wait until every job has ended; False when Ctrl-C cut the wait short."""
    try:
        with _worker(house.settings) as worker, Progress(len(errands)) as progress:
            while waiting := [errand for errand in errands if errand.job.state.is_active]:
                _look(house, waiting)
                progress.show([(errand.path.name, errand.job) for errand in errands])
                worker.tend(house.workers_alive())
                time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        # What was nearly done had the soft timeout to end.
        _look(house, errands)
        left = [errand.job.id for errand in errands if errand.job.state.is_active]
        if not left:
            return True
        click.echo(
            f"Not waiting any longer. Still in the queue: {' '.join(left)}\n"
            "`pisar up` or `pisar worker` goes on with them, `pisar show ID` tells the text.",
            err=True,
        )
        return False
    return True


def _look(house: House, errands: Sequence[Errand]) -> None:
    for errand in errands:
        errand.job = house.queue.get(errand.job.id)


def _deliver(house: House, errands: Sequence[Errand], form: str, output: Path | None) -> int:
    """Give out every text there is; gives the exit code."""
    code = 0
    for errand, name in zip(errands, _target_names(errands, form), strict=True):
        job = errand.job
        if job.state is State.DONE:
            text = rendered(job, house.queue.transcript(job.id), form)
            if output:
                (output / name).write_text(text, encoding="utf-8")
            else:
                click.echo(text, nl=False)
            if not text.strip():
                click.echo(f"{errand.path}: no speech found", err=True)
        elif job.state.is_end:
            click.echo(f"{errand.path}: {reason(job)} (`pisar show {job.id}`)", err=True)
            code = EXIT_FAILED
    return code


def _target_names(errands: Sequence[Errand], form: str) -> list[str]:
    """talk.mp3 gives talk.txt; where talk.wav is there too, talk.mp3.txt and talk.wav.txt."""
    stems = Counter(errand.path.stem for errand in errands)
    return [
        f"{path.stem if stems[path.stem] == 1 else path.name}.{form}"
        for path in (errand.path for errand in errands)
    ]


class _OwnWorker:
    """A worker that this command runs while nobody else's does."""

    def __init__(self, settings: Settings) -> None:
        self.running: process.Process | None = None
        self._settings = settings
        self._ends = 0

    def tend(self, alive: int) -> None:
        """Start a worker when there is none; one that cannot live is a ClickException."""
        if self.running is not None and (code := self.running.poll()) is not None:
            self.running = None
            self._ends += 1
            if code == EXIT_BAD_SETTINGS or self._ends >= _EARLY_ENDS:
                raise click.ClickException("No worker can run here: `pisar check` says why.")
        if self.running is None and not alive:
            self.running = process.start(process.worker_command(), self._settings, self._quiet())

    def _quiet(self) -> dict[str, str]:
        """Its log would run through the progress, which tells the same; a chosen level stays."""
        is_chosen = "level" in self._settings.log.model_fields_set
        return {} if is_chosen else {"PISAR_LOG__LEVEL": "CRITICAL"}


@contextmanager
def _worker(settings: Settings) -> Iterator[_OwnWorker]:
    own = _OwnWorker(settings)
    try:
        yield own
    finally:
        if own.running is not None:
            _stop(own.running, settings.server.force_shutdown_timeout)


def _stop(worker: process.Process, timeout_seconds: float) -> None:
    """Stop the worker in order; Ctrl-C while it ends kills it."""
    hurried: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: hurried.append(number))
    try:
        process.stop([worker], timeout_seconds, hasten=lambda: bool(hurried))
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
