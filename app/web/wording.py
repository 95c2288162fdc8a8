"""What a job says to a person: its state, why it waits, what happened to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from flask_babel import gettext, ngettext
from markupsafe import escape

from app.errors import KINDS, N_
from app.job import Job, Source, State, Step
from app.queue.port import JobEvent
from app.web.i18n import clock_time, lasting, ordinal, percent

STATE_NAMES = {
    State.CREATED: N_("To convert"),
    State.CONVERTED: N_("To recognize"),
    State.TRANSCRIBE: N_("Recognizing"),
    State.DONE: N_("Done"),
    State.FAILED: N_("Failed"),
    State.DEAD: N_("Dead"),
}
"""The states as tabs and facts name them."""

SOURCE_NAMES = {
    Source.WEB: N_("Web"),
    Source.API: N_("API"),
    Source.TELEGRAM: N_("Telegram"),
    Source.UNKNOWN: N_("Unknown"),
}

STEP_NAMES = {
    Step.CONVERT: N_("conversion"),
    Step.RECOGNIZE: N_("handing to the engine"),
    Step.CHECK: N_("recognition"),
}
"""The steps as the switches that pause them name them."""

_WORK = {
    Step.CONVERT: N_("Converting"),
    Step.RECOGNIZE: N_("Starting recognition"),
    Step.CHECK: N_("Recognizing"),
}
_ACCEPTED = {
    Source.WEB: N_("Handed in on the web page"),
    Source.API: N_("Handed in through the API"),
    Source.TELEGRAM: N_("Sent by Telegram"),
    Source.UNKNOWN: N_("Accepted"),
}
_FINISHED = {
    Step.CONVERT: N_("Converted in %(time)s"),
    Step.RECOGNIZE: N_("Given to the speech engine"),
    Step.CHECK: N_("Recognized in %(time)s"),
}
_STUMBLED = {
    Step.CONVERT: N_("Attempt %(attempt)s to convert failed"),
    Step.RECOGNIZE: N_("Attempt %(attempt)s to begin recognition failed"),
    Step.CHECK: N_("Attempt %(attempt)s to recognize failed"),
}
_HAPPENED = {
    "failed": N_("Ended without a text"),
    "dead": N_("Gave up: all attempts are spent"),
    "released": N_("Given back: the worker was asked to stop"),
    "lease_ended": N_("Given back: the worker did not finish in time"),
    "worker_lost": N_("Given back: the worker was gone"),
    "revived": N_("Revived"),
    "cancelled": N_("Cancelled"),
    "deleted": N_("Put into the bin"),
    "undeleted": N_("Taken out of the bin"),
}
_REFUSED = {
    "revive": N_("Not revived: it has not failed."),
    "cancel": N_("Not cancelled: it had ended already."),
    "undelete": N_("It is not in the bin any more."),
    "send_again": N_("Not sent again: it was delivered, or is on its way."),
}
# What happened says in these all that there is to say of the error.
TELL_THEMSELVES = frozenset({"lease_ended", "worker_lost", "cancelled", "dead"})
# Proper names of engines that hold a word to translate; any other name is shown as it is.
ENGINE_NAMES = (N_("Whisper base (built in, draft quality)"),)
_TONE_ICONS = {"done": "done", "failed": "failed", "dead": "dead", "stuck": "stuck"}


@dataclass(frozen=True)
class Status:
    """What a job is doing: a word, what is to be said beyond it, and how it looks.

    tone is waiting, working, stuck (waiting with a reason), done, failed, dead or cancelled.
    progress is 0-1, None when there is none to show. short is for where there is little room.
    """

    tone: str
    word: str
    rest: str = ""
    progress: float | None = None
    short: str = ""

    @property
    def icon(self) -> str:
        """The shape that goes with the tone."""
        return _TONE_ICONS.get(self.tone, self.tone)

    @property
    def text(self) -> str:
        """All of it in plain text."""
        rest = escape(self.rest).striptags()
        return f"{self.word} – {rest}" if rest else self.word


@dataclass(frozen=True)
class Surroundings:
    """What a sentence about a job depends on beside the job itself.

    paused holds the steps that the owner has paused, and since when.
    """

    now: datetime
    workers: int
    max_attempts: int
    paused: Mapping[Step, datetime] = field(default_factory=dict)


def status(
    job: Job,
    around: Surroundings,
    *,
    position: int | None = None,
    seconds_left: float | None = None,
    is_silent: bool = False,
) -> Status:
    """What a job is doing now; is_silent tells a done one without speech."""
    if job.state.is_end:
        return _ended(job, is_silent)
    if not job.is_running and job.step in around.paused:
        return Status("stuck", gettext("Paused by the owner"), short=gettext("Paused"))
    if not around.workers:
        return Status("stuck", gettext("Waiting"), gettext("no worker is running"))
    if job.is_running:
        return _running(job, seconds_left)
    return _waiting(job, around, position)


def attempts_made(job: Job) -> int:
    """How often the job was worked on: the claim that buried it found the limit spent."""
    return max(job.attempts - 1, 1) if job.state is State.DEAD else job.attempts


def error_sentence(code: str | None) -> str:
    """What went wrong and what to do; empty without an error."""
    if code is None:
        return ""
    return str(gettext(KINDS.get(code, KINDS["internal"]).sentence))


def refusal(verb: str, job: Job) -> str:
    """Why a verb did nothing to a job that has moved on meanwhile."""
    if verb == "revive" and job.state.is_active:
        return str(gettext("Not revived: it is at work again already."))
    return str(gettext(_REFUSED[verb]))


def vain() -> str:
    """What is said of a job revived although the verdict was on its recording."""
    return str(gettext("Revived; the verdict was on the recording, so expect the same again."))


def happened(event: JobEvent, source: Source) -> str:
    """An event of a job's history in plain words."""
    if event.outcome == "accepted":
        return str(gettext(_ACCEPTED[source]))
    if event.outcome == "success" and event.step:
        return str(gettext(_FINISHED[event.step], time=lasting(event.seconds or 0)))
    if event.outcome == "failure" and event.step:
        return str(gettext(_STUMBLED[event.step], attempt=event.attempt))
    return str(gettext(_HAPPENED.get(event.outcome, event.outcome)))


def _ended(job: Job, is_silent: bool) -> Status:
    if job.state is State.DONE:
        rest = gettext("no speech found") if is_silent else ""
        return Status("done", gettext("Done"), rest)
    if job.state is State.DEAD:
        spent = attempts_made(job)
        rest = ngettext("gave up after %(num)d attempt", "gave up after %(num)d attempts", spent)
        return Status("dead", gettext("Dead"), rest)
    if job.error_code == "cancelled":
        return Status("cancelled", gettext("Cancelled"))
    return Status("failed", gettext("Failed"))


def _running(job: Job, seconds_left: float | None) -> Status:
    assert job.step is not None  # noqa: S101 - only active jobs come here
    word = gettext(_WORK[job.step])
    if job.progress is None:
        return Status("working", word)
    rest = percent(job.progress)
    if seconds_left is not None:
        rest = f"{rest}, {_left(seconds_left)}"
    return Status("working", word, rest, job.progress)


def _waiting(job: Job, around: Surroundings, position: int | None) -> Status:
    if job.delay_time and job.delay_time > around.now and job.attempts:
        rest = escape(gettext("next try at %(time)s, attempt %(attempt)s of %(limit)s")) % {
            "time": clock_time(job.delay_time),
            "attempt": job.attempts + 1,
            "limit": around.max_attempts,
        }
        return Status("stuck", gettext("Waiting"), rest)
    if job.state is State.TRANSCRIBE and job.delay_time is not None and not job.attempts:
        # The engine works on it elsewhere; we only ask now and then.
        return Status("working", gettext("Recognizing"))
    if position is None:
        return Status("waiting", gettext("Waiting"))
    if position == 1:
        return Status("waiting", gettext("Waiting"), gettext("next in line"))
    rest = gettext("%(place)s in line", place=ordinal(position))
    return Status("waiting", gettext("Waiting"), rest)


def _left(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return str(gettext("less than a minute left"))
    if minutes < 90:
        return str(ngettext("about %(num)d minute left", "about %(num)d minutes left", minutes))
    hours = round(minutes / 60)
    return str(ngettext("about %(num)d hour left", "about %(num)d hours left", hours))
