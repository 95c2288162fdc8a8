"""The one message that tells how a recording stands: sent at once, changed while it moves on.

An album has one for all its recordings. When the text has come the message goes away; otherwise
it says how it ended. A change that Telegram's limits leave no room for is left out: the next one
says more.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

from babel.numbers import format_percent

from app.chats import JobMessage, JobMessages
from app.errors import N_
from app.job import Job, State, Step
from app.queue.port import Queue
from app.queue.replies import Replies, ReplyState
from app.telegram.api import BotApi, Buttons
from app.telegram.errors import Busy, Refused, TelegramError
from app.telegram.outgoing import Outgoing, Stopped
from app.telegram.pace import Urgency
from app.telegram.words import say

log = logging.getLogger(__name__)

NEXT = N_("Accepted. Next in line.")
PLACE = N_("Accepted. Place in line: %(place)s.")
WAITING = N_("Accepted. Waiting.")
NO_WORKER = N_("Accepted. It waits until the service's worker runs again.")
PAUSED = N_("Accepted. The owner has paused the work; it goes on by itself.")
NEXT_TRY = N_("It did not work at first. The next try comes by itself.")
CONVERTING = N_("Converting …")
RECOGNIZING = N_("Recognizing …")
RECOGNIZING_PART = N_("Recognizing … %(part)s")
DONE = N_("Done.")
ENDED = N_("It has ended without a text.")
UNSURE = N_("The answer may not have arrived here. The owner can send it again.")
ALBUM = N_("Recordings: %(all)s, ready: %(ready)s.")
CANCEL = N_("Cancel")

_DUE_AT_ONCE = 2000
_DUE_OF_EACH_CHAT = 200
"""Twenty albums; Telegram's have ten files at most."""

_OPEN_PER_CHAT = 20
"""Who sends a thousand recordings is not sent a thousand messages besides their texts."""

_PATIENCE_SECONDS = 20.0
_SHORTEST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 15.0
_CHANGES_KEPT = 10_000
_PERCENT_STEP = 5
_MARK = ""
"""What `shows` holds while the message is on its way: after a kill it may stand in the chat."""

_UNSURE = (ReplyState.UNDELIVERED, ReplyState.DOUBTFUL)
_TRIES_AT_END = 8
_BAD_REQUEST = 400


class Describer:
    """Says how a job stands, in a language of i18n.LANGUAGES."""

    def __init__(self, queue: Queue, workers_alive: Callable[[], int]) -> None:
        self._queue = queue
        self._workers_alive = workers_alive

    def __call__(self, job: Job, language: str) -> str:
        """One sentence or two."""
        if job.state.is_end:
            return say(language, DONE if job.state is State.DONE else ENDED)
        if job.is_running:
            return _running(job, language)
        if job.step in self._queue.paused_steps():
            return say(language, PAUSED)
        if not self._workers_alive():
            return say(language, NO_WORKER)
        if job.delay_time and job.attempts:
            return say(language, NEXT_TRY)
        if job.state is State.TRANSCRIBE:
            return _running(job, language)
        place = self._queue.position(job)
        if place is None:
            return say(language, WAITING)
        return say(language, NEXT) if place == 1 else say(language, PLACE, place=place)


class StatusBoard:
    """Keeps the status messages of one bot true; one thread calls turn()."""

    def __init__(
        self,
        api: BotApi,
        outgoing: Outgoing,
        messages: JobMessages,
        queue: Queue,
        replies: Replies,
        describe: Callable[[Job, str], str],
        bot: int,
        now: Callable[[], datetime],
    ) -> None:
        self._api = api
        self._outgoing = outgoing
        self._messages = messages
        self._queue = queue
        self._replies = replies
        self._describe = describe
        self._bot = bot
        self._now = now
        # When each message may change again, by chat and number (monotonic), and how often it did.
        self._changed: dict[tuple[int, int], tuple[float, int]] = {}

    def turn(self) -> None:
        """Send and change what is due; Stopped when the process stops."""
        shown: dict[int, int] = {}
        for group in _groups(self._messages.due(_DUE_AT_ONCE, _DUE_OF_EACH_CHAT)):
            chat = group[0].chat
            shown[chat] = shown.get(chat, 0) + 1
            if shown[chat] > _OPEN_PER_CHAT:
                continue
            self._tend(group)

    def _tend(self, group: Sequence[JobMessage]) -> None:
        if group[0].bot != self._bot:
            # Another bot's messages cannot be changed by this one.
            self._close(group)
            return
        jobs = [job for message in group if (job := self._queue.find(message.job))]
        is_moving = any(job.state.is_active for job in jobs)
        number = _number(group)
        if is_moving and number is not None:
            self._change(group, jobs, number)
        elif is_moving and all(message.shows is None for message in group):
            self._begin(group, jobs)
        elif not is_moving and ReplyState.OWED not in (fates := self._fates(jobs)):
            self._end(group, jobs, number, fates)

    def _fates(self, jobs: Sequence[Job]) -> set[ReplyState]:
        """What became of the replies; what is being sent counts as owed."""
        found = [self._replies.of_job(job.id) for job in jobs]
        states = {replies[-1].state for replies in found if replies}
        is_sending = ReplyState.SENDING in states
        return states | {ReplyState.OWED} if is_sending else states

    def _begin(self, group: Sequence[JobMessage], jobs: Sequence[Job]) -> None:
        first = group[0]
        text, buttons = self._words(group, jobs), self._buttons(group)
        self._show(group, None, _MARK)

        def act(chat: int) -> int:
            reply_to = first.message if chat == first.chat else None
            return self._api.send_message(
                chat, text, thread_id=first.thread, reply_to=reply_to, buttons=buttons
            )

        try:
            number = self._outgoing.send(first.chat, Urgency.WORD, act, _PATIENCE_SECONDS)
        except Stopped:
            self._show(group, None, None)
            raise
        except TelegramError as error:
            # Without it the recording is worked on all the same, and its text comes.
            log.warning("how a recording stands was not told", extra=_facts(group, error))
            return
        self._show(group, number, text)
        self._note_change(first.chat, number)

    def _change(self, group: Sequence[JobMessage], jobs: Sequence[Job], number: int) -> None:
        chat = group[0].chat
        if not self._is_due(chat, number):
            return
        text = self._words(group, jobs)
        stands = {(message.status_message, message.shows) for message in group}
        if stands == {(number, text)} or not self._outgoing.pace.may_change(chat):
            return
        self._note_change(chat, number)
        try:
            self._edit(chat, number, text, self._buttons(group))
        except Refused as refusal:
            # Deleted by somebody, or the bot was thrown out: there is nothing to keep up.
            log.info("a status message is gone", extra=_facts(group, refusal))
            self._close(group)
        except TelegramError as error:
            self._put_off(error)
        else:
            self._show(group, number, text)

    def _end(
        self,
        group: Sequence[JobMessage],
        jobs: Sequence[Job],
        number: int | None,
        fates: set[ReplyState],
    ) -> None:
        """Take the message away, or say in it how all ended; after a kill both do no harm twice."""
        chat, language = group[0].chat, group[0].language
        if number is None:
            self._close(group)
            return
        if not (self._is_due(chat, number) and self._outgoing.pace.may_change(chat)):
            return
        self._note_change(chat, number)
        try:
            if not fates.isdisjoint(_UNSURE):
                self._edit(chat, number, say(language, UNSURE), ())
            elif not self._has_gone(chat, number):
                self._edit(chat, number, self._words(group, jobs), ())
        except Refused:
            self._close(group)
        except TelegramError as error:
            self._put_off(error)
            if self._changes(chat, number) > _TRIES_AT_END:
                self._close(group)
        else:
            self._close(group)

    def _has_gone(self, chat: int, number: int) -> bool:
        """Take the message away; False when Telegram does not let us, as after two days."""
        try:
            self._api.delete_message(self._outgoing.address(chat), number)
        except Refused as refusal:
            is_known = refusal.error_code == _BAD_REQUEST
            return is_known and "to delete not found" in refusal.description.lower()
        return True

    def _edit(self, chat: int, number: int, text: str, buttons: Buttons) -> None:
        try:
            self._api.edit_message(self._outgoing.address(chat), number, text, buttons=buttons)
        except Refused as refusal:
            if "not modified" not in refusal.description.lower():
                raise

    def _put_off(self, error: TelegramError) -> None:
        if isinstance(error, Busy):
            self._outgoing.pace.rest(error.retry_after_seconds)

    def _words(self, group: Sequence[JobMessage], jobs: Sequence[Job]) -> str:
        language = group[0].language
        moving = [job for job in jobs if job.state.is_active]
        told = (moving or jobs)[:1]
        words = self._describe(told[0], language) if told else say(language, ENDED)
        if len(group) == 1:
            return words
        ready = len(group) - len(moving)
        return f"{say(language, ALBUM, all=len(group), ready=ready)} {words}"

    def _buttons(self, group: Sequence[JobMessage]) -> Buttons:
        if len(group) > 1:
            return ()
        return [[(say(group[0].language, CANCEL), f"cancel:{group[0].job}")]]

    def _is_due(self, chat: int, number: int) -> bool:
        return time.monotonic() >= self._changed.get((chat, number), (0.0, 0))[0]

    def _changes(self, chat: int, number: int) -> int:
        return self._changed.get((chat, number), (0.0, 0))[1]

    def _note_change(self, chat: int, number: int) -> None:
        if len(self._changed) >= _CHANGES_KEPT:
            self._changed.clear()
        changes = self._changes(chat, number)
        pause = min(_SHORTEST_PAUSE_SECONDS + changes, _LONGEST_PAUSE_SECONDS)
        self._changed[chat, number] = (time.monotonic() + pause, changes + 1)

    def _close(self, group: Sequence[JobMessage]) -> None:
        """Nothing more is shown; a job that is revived gets a new message."""
        for message in group:
            self._messages.show(message.job, None, None, self._now(), is_closed=True)

    def _show(self, group: Sequence[JobMessage], number: int | None, text: str | None) -> None:
        for message in group:
            self._messages.show(message.job, number, text, self._now())


def _number(group: Sequence[JobMessage]) -> int | None:
    """The status message of a group, which those that came later do not know of."""
    numbers = (message.status_message for message in group)
    return next((number for number in numbers if number is not None), None)


def _running(job: Job, language: str) -> str:
    if job.step is Step.CONVERT:
        return say(language, CONVERTING)
    if not job.progress:
        return say(language, RECOGNIZING)
    whole = int(job.progress * 100) // _PERCENT_STEP * _PERCENT_STEP
    return say(language, RECOGNIZING_PART, part=format_percent(whole / 100, locale=language))


def _groups(due: Sequence[JobMessage]) -> Iterator[Sequence[JobMessage]]:
    """What shares a status message: an album, or one recording."""

    def place(message: JobMessage) -> tuple[int, int, str]:
        return (message.bot, message.chat, message.album or message.job)

    order = {place(message): number for number, message in reversed(list(enumerate(due)))}
    ordered = sorted(due, key=lambda message: (order[place(message)], message.message))
    for _, group in groupby(ordered, place):
        yield list(group)


def _facts(group: Sequence[JobMessage], error: TelegramError) -> Mapping[str, str]:
    return {"job_id": group[0].job, "reason": str(error)}
