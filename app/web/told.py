"""What became of the answer to a chat, for the owner's eyes: delivered or not, and why."""

from dataclasses import dataclass
from datetime import datetime

from flask_babel import gettext

from app.chats import Chats, JobMessages
from app.errors import N_, AppError
from app.job import Job
from app.queue.replies import Reason, Replies, Reply, ReplyState
from app.web.services import now, services

_SENDER = "web"
_STATES = {
    ReplyState.OWED: N_("The answer waits to be sent."),
    ReplyState.SENDING: N_("The answer is being sent."),
    ReplyState.SENT: N_("The answer was delivered."),
    ReplyState.DOUBTFUL: N_(
        "The answer may have arrived, or not: its sending broke off."
        " It is never repeated by itself."
    ),
}
_REASONS = {
    Reason.INTAKE_DOWN: N_("The answer was not delivered: the bot was not running."),
    Reason.NO_ADDRESSEE: N_("The answer was not delivered: the job's record names no chat."),
    Reason.REJECTED: N_(
        "The answer was not delivered: Telegram refused. The bot may be blocked, or the chat gone."
    ),
    Reason.UNREACHABLE: N_("The answer was not delivered: Telegram could not be reached."),
}


@dataclass(frozen=True)
class Told:
    """The chat by its title, who sent the recording, and what became of the newest answer.

    sentence is empty and created None before anything is owed.
    """

    chat: str
    person: int | None
    sentence: str
    created: datetime | None
    may_send_again: bool


def told(job: Job) -> Told | None:
    """What a chat was told of a job; None for a job that came by another door."""
    if job.tg_chat_id is None:
        return None
    database = services().database
    chat = Chats(database).find(job.tg_chat_id)
    message = JobMessages(database).of_job(job.id)
    reply = newest(job.id)
    return Told(
        chat=chat.title if chat else str(job.tg_chat_id),
        person=message.person if message else None,
        sentence=_sentence(reply) if reply else "",
        created=reply.created if reply else None,
        # Of a job that goes on there is nothing to say before it has ended anew.
        may_send_again=reply is not None
        and reply.verdict is job.state
        and reply.state in (ReplyState.UNDELIVERED, ReplyState.DOUBTFUL),
    )


def newest(job_id: str) -> Reply | None:
    """The newest answer that a job owes or owed; None when it owes nobody any."""
    found = Replies(services().database, _SENDER).of_job(job_id)
    return found[-1] if found else None


def send_again(job_id: str) -> Job:
    """Owe the answer once more; AppError wrong_state when there is none, or it has arrived."""
    job = services().queue.get(job_id)
    if newest(job.id) is None:
        raise AppError("wrong_state")
    Replies(services().database, _SENDER).send_again(job.id, now())
    return job


def _sentence(reply: Reply) -> str:
    if reply.state is ReplyState.UNDELIVERED and reply.reason:
        return str(gettext(_REASONS[reply.reason]))
    return str(gettext(_STATES.get(reply.state, _REASONS[Reason.UNREACHABLE])))
