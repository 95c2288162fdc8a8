"""The replies of ended jobs as Telegram's messages: the Messenger of app.delivery."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath

from app.chats import JobMessages
from app.delivery import MayHaveArrived, PutOff, Undeliverable
from app.errors import KINDS, N_
from app.i18n import DEFAULT_LANGUAGE
from app.job import REVIVABLE, Job, State
from app.queue.replies import Owed, Reason
from app.revival import ends_alike
from app.settings import Telegram
from app.telegram.api import BotApi, Buttons
from app.telegram.errors import Refused, Unreachable
from app.telegram.outgoing import Outgoing, Stopped
from app.telegram.pace import Urgency
from app.telegram.split import beginning, clean, length, split
from app.telegram.words import say
from app.transcripts import render

SILENT = N_("No speech was found in this recording.")
DEAD = N_("It did not work after several tries. %(reason)s")
RETRY = N_("Try again")

_CAPTION_LENGTH = 900
"""Telegram takes 1024."""
_BAD_REQUEST = 400
_NAME_LENGTH = 60


@dataclass(frozen=True)
class Reply:
    """What is sent to the chat: messages one after another, or one file with its first lines."""

    parts: Sequence[str]
    file: bytes | None = None
    buttons: Buttons = ()


class ChatMessenger:
    """Answers recordings in their chats; bot is the number of the bot that speaks."""

    def __init__(
        self,
        api: BotApi,
        outgoing: Outgoing,
        messages: JobMessages,
        settings: Telegram,
        bot: int,
        now: Callable[[], datetime],
    ) -> None:
        self._api = api
        self._outgoing = outgoing
        self._messages = messages
        self._settings = settings
        self._bot = bot
        self._now = now

    def parts(self, owed: Owed) -> Sequence[str]:
        """See delivery.Messenger."""
        return self._reply(owed).parts

    def send(self, owed: Owed, number: int, part: str) -> None:
        """See delivery.Messenger."""
        reply = self._reply(owed)
        is_last = number == len(reply.parts) - 1
        try:
            self._say(owed, part, reply.file, reply.buttons if is_last else ())
        except Stopped:
            raise PutOff from None
        except Refused:
            raise Undeliverable(Reason.REJECTED) from None
        except Unreachable as fault:
            if fault.may_have_arrived:
                raise MayHaveArrived from None
            raise Undeliverable(Reason.UNREACHABLE) from None

    def _say(self, owed: Owed, text: str, file: bytes | None, buttons: Buttons) -> None:
        job, known = owed.job, self._messages.of_job(owed.job.id)
        assert job.tg_chat_id is not None  # noqa: S101 - app.delivery has looked
        home = job.tg_chat_id
        patience = self._patience_seconds(owed)

        def act(chat: int, is_bare: bool = False) -> int:
            # Another bot, or a group that has moved, counts its messages anew.
            is_ours = chat == home and (known is None or known.bot == self._bot)
            reply_to = job.tg_reply_message_id if is_ours and not is_bare else None
            thread = known.thread if known and not is_bare else None
            if file is None:
                return self._api.send_message(
                    chat, text, thread_id=thread, reply_to=reply_to, buttons=buttons
                )
            name = file_name(job)
            return self._api.send_document(
                chat, name, file, caption=text, thread_id=thread, reply_to=reply_to, buttons=buttons
            )

        try:
            self._outgoing.send(home, Urgency.REPLY, act, patience)
        except Refused as refusal:
            if not _is_place_gone(refusal):
                raise
            # The topic or the recording was deleted; the text is wanted all the same.
            self._outgoing.send(home, Urgency.REPLY, lambda chat: act(chat, True), patience)

    def _patience_seconds(self, owed: Owed) -> float:
        """What is left of the time that a reply may wait (P47)."""
        age = (self._now() - owed.reply.created).total_seconds()
        return self._settings.delivery_wait - max(age, 0.0)

    def _reply(self, owed: Owed) -> Reply:
        language = self._language(owed.job)
        if owed.reply.verdict is not State.DONE:
            return _failure(owed, language)
        text = clean(render(owed.transcript, "txt")) if owed.transcript else ""
        if not text:
            return Reply([say(language, SILENT)])
        buttons = [[("srt", f"srt:{owed.job.id}"), ("txt", f"txt:{owed.job.id}")]]
        limit, most = self._settings.message_limit, self._settings.max_parts
        parts = split(text, limit) if length(text) <= limit * most else ()
        if 0 < len(parts) <= most:
            return Reply(parts, buttons=buttons)
        return Reply([beginning(text, _CAPTION_LENGTH)], (text + "\n").encode(), buttons)

    def _language(self, job: Job) -> str:
        known = self._messages.of_job(job.id)
        return known.language if known else DEFAULT_LANGUAGE


def file_name(job: Job, form: str = "txt") -> str:
    """What the file of a job's text is called for its sender."""
    stem = PurePath(job.display_name.replace("/", "_")).stem[:_NAME_LENGTH].strip(" .")
    return f"{stem or job.id}.{form}"


def may_retry(job: Job) -> bool:
    """True when the sender may hope for another end."""
    return job.state in REVIVABLE and not ends_alike(job)


def _failure(owed: Owed, language: str) -> Reply:
    job = owed.job
    kind = KINDS.get(job.error_code or "internal", KINDS["internal"])
    sentence = say(language, kind.sentence)
    if owed.reply.verdict is State.DEAD:
        sentence = say(language, DEAD, reason=sentence)
    again = [[(say(language, RETRY), f"retry:{job.id}")]] if may_retry(job) else ()
    return Reply([sentence], buttons=again)


def _is_place_gone(refusal: Refused) -> bool:
    """True when Telegram misses the topic or the message to reply to, not the chat."""
    words = refusal.description.lower()
    return refusal.error_code == _BAD_REQUEST and (
        "thread not found" in words or "topic" in words or "replied not found" in words
    )
