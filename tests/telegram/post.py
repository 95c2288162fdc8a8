"""The sending half of the bot in the test's own process: jobs end, and their chats show it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.assembly import House, opened
from app.chats import Chats, JobMessage, JobMessages
from app.clock import utcnow
from app.delivery import Delivery
from app.errors import AppError
from app.intake import Addressee
from app.job import Job, Source, State
from app.liveness import BOT
from app.queue.replies import Reason, Replies, ReplyState
from app.settings import load
from app.telegram.api import BotApi, build
from app.telegram.messenger import ChatMessenger
from app.telegram.outgoing import Outgoing
from app.telegram.pace import Pace
from app.telegram.status import Describer, StatusBoard
from tests.queue.hands import RESULTS, held, recognized
from tests.telegram.double import Telegram
from tests.telegram.double.messages import Message


@dataclass
class Moved:
    """A clock that runs, and can be moved on; seconds."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@dataclass
class Post:
    """A bot that sends and never asks for news; turn by turn, as the test wants."""

    house: House
    telegram: Telegram
    api: BotApi
    outgoing: Outgoing
    delivery: Delivery
    board: StatusBoard
    replies: Replies
    messages: JobMessages
    stopping: threading.Event
    workers: list[str]
    clock: Moved

    def takes(self, message: Message, *, language: str = "en", album: str | None = None) -> Job:
        """A job for a recording that somebody sent."""
        bot = int(self.telegram.token.split(":")[0])
        addressee = Addressee(bot, message.chat.id, message.id)
        draft = self.house.intake.draft()
        draft.write(b"OggS" + addressee.key.encode())
        job = self.house.intake.accept(
            draft,
            source=Source.TELEGRAM,
            display_name="talk.ogg",
            language=None,
            sender=addressee.sender,
            addressee=addressee,
            now=utcnow(),
        ).job
        person, thread = message.sender, message.thread if message.is_in_topic else None
        self.messages.add(
            JobMessage(
                job.id,
                bot,
                message.chat.id,
                message.id,
                thread,
                album,
                person.id if person else None,
                language,
            ),
            utcnow(),
        )
        return job

    def ends(self, text: str) -> None:
        """The job that is next in line ends with a text."""
        for state in (State.CREATED, State.CONVERTED):
            claim = held(self.house.queue, state, utcnow())
            assert self.house.queue.finish(claim, RESULTS[state](), utcnow())
        claim = held(self.house.queue, State.TRANSCRIBE, utcnow())
        assert self.house.queue.finish(claim, recognized(text), utcnow())

    def fails(self, code: str) -> None:
        """The job that is next in line ends by a verdict."""
        claim = held(self.house.queue, now=utcnow())
        assert self.house.queue.fail(claim, AppError(code), utcnow())

    def shows(self) -> None:
        """Bring the status messages up to date, with all the room that Telegram leaves."""
        self.clock.ahead += 60
        self.board.turn()

    def sends(self) -> None:
        """Send all that is owed."""
        while self.delivery.turn():
            pass

    def fate(self, job: Job) -> tuple[ReplyState, Reason | None]:
        """What became of the job's newest reply."""
        reply = self.replies.of_job(job.id)[-1]
        return reply.state, reply.reason


@contextmanager
def post(data_dir: Path, telegram: Telegram, **more: str) -> Iterator[Post]:
    """The sending half on a data directory; more are settings of the section telegram."""
    environ = {
        "PISAR_STORAGE__DATA_DIR": str(data_dir),
        "PISAR_TELEGRAM__TOKEN": telegram.token,
        "PISAR_TELEGRAM__API_URL": telegram.api_url,
        "PISAR_TELEGRAM__REQUEST_TIMEOUT": "1",
    }
    settings = load(environ | {f"PISAR_TELEGRAM__{key}": value for key, value in more.items()})
    api, stopping, clock = build(settings), threading.Event(), Moved()
    with opened(settings, BOT) as house:
        bot = int(telegram.token.split(":")[0])
        outgoing = Outgoing(Pace(clock), Chats(house.database), stopping)
        replies, messages = Replies(house.database, house.name), JobMessages(house.database)
        messenger = ChatMessenger(api, outgoing, messages, settings.telegram, bot, utcnow)
        workers = ["a worker"]
        describe = Describer(house.queue, lambda: len(workers))
        yield Post(
            house=house,
            telegram=telegram,
            api=api,
            outgoing=outgoing,
            delivery=Delivery(replies, messenger, utcnow),
            board=StatusBoard(api, outgoing, messages, house.queue, replies, describe, bot, utcnow),
            replies=replies,
            messages=messages,
            stopping=stopping,
            workers=workers,
            clock=clock,
        )
