"""A job as its pages show it: all that a template prints, prepared here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zlib import crc32

from flask import current_app, url_for
from flask_babel import gettext

from app.chats import Chats
from app.clock import later
from app.errors import AppError
from app.job import ACTIVE, REVIVABLE, Job, State, StoredFile
from app.queue.port import JobEvent
from app.revival import ends_alike
from app.transcripts import MEDIA_TYPES, Paragraph, paragraphs
from app.web import identity, wording
from app.web.i18n import percent
from app.web.pace import Pace
from app.web.services import now, services
from app.web.told import Told, told
from app.web.wording import Status, Surroundings

PACE = "pisar.pace"
_FAVICONS = {State.DONE: "done", State.FAILED: "failed", State.DEAD: "failed"}


@dataclass(frozen=True)
class Row:
    """A job in a list; below its facts comes one quiet line with the reason and the fault.

    chat is the title of the one that it came from, empty for another door.

    Progress stands beside the state's word instead, and that no worker runs above the list.
    """

    job: Job
    status: Status
    fault: str
    is_revivable: bool
    is_active: bool
    reason: str
    is_fresh: bool = False
    chat: str = ""

    @property
    def ends_alike(self) -> bool:
        """True when reviving it would most likely change nothing."""
        return ends_alike(self.job)

    @property
    def version(self) -> str:
        """Changes whenever the row does."""
        said = f"{self.job.state} {self.status.text} {self.fault} {self.job.duration_seconds}"
        return f"{crc32(said.encode()):08x}"

    @property
    def attempts(self) -> int:
        """How often it was worked on."""
        return wording.attempts_made(self.job)

    @property
    def language(self) -> str | None:
        """What was heard, or else what the sender chose."""
        return self.job.detected_language or self.job.language

    @property
    def source(self) -> str:
        """The way in, in words."""
        return str(gettext(wording.SOURCE_NAMES[self.job.source]))


@dataclass(frozen=True)
class Binned:
    """A job in the bin; until is when its time there ends, None when that is over."""

    job: Job
    status: Status
    until: datetime | None


@dataclass(frozen=True)
class Moment:
    """A line of a job's history; fault and detail tell what went wrong, once for the same."""

    time: datetime
    sentence: str
    fault: str
    detail: str


@dataclass(frozen=True)
class View:
    """A job's own page. history is oldest first; source is None when its record is gone.

    told is for the owner alone, of a job that came from a chat.
    """

    job: Job
    status: Status
    fault: str
    text: Sequence[Paragraph]
    history: Sequence[Moment]
    source: StoredFile | None
    has_source: bool
    is_owner: bool
    may_hand_in: bool
    told: Told | None = None

    @property
    def title(self) -> str:
        """What the browser's tab says: the state first, where there is one to tell."""
        progress = self.status.progress
        state = percent(progress) if progress is not None else self.status.word
        return f"{state} · {self.job.display_name}"

    @property
    def favicon(self) -> str:
        """The icon of the browser's tab."""
        return _FAVICONS.get(self.job.state, "active")

    @property
    def stage(self) -> str:
        """Changes whenever more of the page than the line of the state does."""
        job = self.job
        return f"{job.state}.{job.attempts}.{int(job.is_running)}.{job.playable_file or ''}"

    @property
    def version(self) -> str:
        """Changes whenever the line of the state does."""
        return f"{crc32(self.status.text.encode()):08x}"

    @property
    def attempts(self) -> int:
        """How often it was worked on since it last went on."""
        return wording.attempts_made(self.job)

    @property
    def state_name(self) -> str:
        """The state in words."""
        return str(gettext(wording.STATE_NAMES[self.job.state]))

    @property
    def source_name(self) -> str:
        """The way in, in words."""
        return str(gettext(wording.SOURCE_NAMES[self.job.source]))

    @property
    def heard(self) -> str | None:
        """The language of the text."""
        return self.job.detected_language or self.job.language

    @property
    def engine(self) -> str:
        """The engine's name, with its quality in words; empty before one is chosen."""
        name = self.job.recognizer or ""
        return str(gettext(name)) if name in wording.ENGINE_NAMES else name

    @property
    def source_url(self) -> str:
        """Where the recording is, as it came."""
        return url_for("files.source", job_id=self.job.id)

    @property
    def is_active(self) -> bool:
        """True while something is still to come."""
        return self.job.state in ACTIVE

    @property
    def may_revive(self) -> bool:
        """True when this reader can set the job going again."""
        return self.is_owner and self.job.state in REVIVABLE and self.has_source

    @property
    def ends_alike(self) -> bool:
        """True when reviving it would most likely change nothing."""
        return ends_alike(self.job)

    @property
    def audio_url(self) -> str | None:
        """Where the player reads; None before there is anything to play."""
        if self.job.playable_file is None:
            return None
        return url_for("files.audio", job_id=self.job.id)

    @property
    def downloads(self) -> Sequence[tuple[str, str]]:
        """The forms of the text, each with its address."""
        job_id = self.job.id
        return [(form, url_for("api.transcript", job_id=job_id, form=form)) for form in MEDIA_TYPES]


def status_of(job: Job) -> Status:
    """What a job is doing now, with its place in line."""
    return _status(job, is_silent=False)


def fault_of(job: Job) -> str:
    """What went wrong, in words; a cancelled job had nothing wrong with it."""
    if job.state is State.DONE or job.error_code == "cancelled":
        return ""
    return wording.error_sentence(job.error_code)


def rows_of(jobs: Sequence[Job], around: Surroundings, *, is_fresh: bool = False) -> Sequence[Row]:
    """Jobs as a list shows them: from their own rows, so that a long list costs no more."""
    numbers = {job.tg_chat_id for job in jobs if job.tg_chat_id is not None}
    titles = Chats(services().database).titles(numbers) if numbers else {}
    return [
        _row_of(job, around, titles.get(job.tg_chat_id or 0, ""), is_fresh=is_fresh) for job in jobs
    ]


def _row_of(job: Job, around: Surroundings, chat: str, *, is_fresh: bool) -> Row:
    seconds_left = _pace().seconds_left(job, around.now)
    status = wording.status(job, around, seconds_left=seconds_left)
    is_told_here = status.progress is None and (around.workers > 0 or job.state.is_end)
    return Row(
        job=job,
        status=status,
        fault=fault_of(job),
        is_revivable=job.state in REVIVABLE,
        is_active=job.state in ACTIVE,
        reason=status.rest if is_told_here else "",
        is_fresh=is_fresh,
        chat=chat,
    )


def binned_of(job: Job, around: Surroundings) -> Binned:
    """A job as the bin shows it."""
    assert job.deleted is not None  # noqa: S101 - callers have it from the bin
    until = later(job.deleted, services().settings.retention.bin_seconds)
    return Binned(job, wording.status(job, around), until if until > around.now else None)


def binned(job_id: str) -> Binned | None:
    """The job as the bin shows it, to the owner alone; None when it does not lie there."""
    is_asked = bool(job_id) and identity.session() is not None
    job = services().queue.find_binned(job_id) if is_asked else None
    return binned_of(job, surroundings()) if job else None


def surroundings() -> Surroundings:
    """What the sentences about all jobs depend on at this moment."""
    bundle = services()
    return Surroundings(
        now(),
        bundle.workers_alive(),
        bundle.settings.worker.max_attempts,
        bundle.queue.paused_steps(),
    )


def view_of(job: Job) -> View:
    """A job as its own page shows it."""
    bundle = services()
    transcript = bundle.queue.transcript(job.id) if job.state is State.DONE else None
    text = paragraphs(transcript) if transcript else []
    source = _source(job)
    is_owner = identity.session() is not None
    return View(
        job=job,
        status=_status(job, is_silent=job.state is State.DONE and not text),
        fault=fault_of(job),
        text=text,
        history=_history(job, bundle.queue.events(job.id)),
        source=source,
        has_source=source is not None and bundle.storage.exists(source),
        is_owner=is_owner,
        may_hand_in=is_owner or bundle.settings.intake_is_open,
        told=told(job) if is_owner else None,
    )


def _status(job: Job, *, is_silent: bool) -> Status:
    return wording.status(
        job,
        surroundings(),
        position=services().queue.position(job),
        seconds_left=_pace().seconds_left(job, now()),
        is_silent=is_silent,
    )


def _history(job: Job, events: Sequence[JobEvent]) -> list[Moment]:
    moments = []
    told = ("", "")
    for event in events:
        said = (wording.error_sentence(event.error_code), event.error_text or "")
        is_news = said != told and event.outcome not in wording.TELL_THEMSELVES
        sentence = wording.happened(event, job.source)
        moments.append(Moment(event.time, sentence, *(said if is_news else ("", ""))))
        told = said
    return moments


def _source(job: Job) -> StoredFile | None:
    try:
        return services().queue.file(job.source_file)
    except AppError:
        return None


def _pace() -> Pace:
    pace: Pace = current_app.extensions[PACE]
    return pace
