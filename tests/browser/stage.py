"""Brings jobs into every state by the queue's own verbs, and serves the pages that show them."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from socket import socket

from app import assembly, liveness
from app.assembly import House
from app.chats import Access, Bots, ChatKind, Chats, LinkFor, Links, Mode
from app.clock import later, utcnow
from app.errors import AppError
from app.job import Job, Segment, Source, State, Transcript
from app.liveness import Presence
from app.queue.port import Claim, Converted, Recognized, Started
from app.settings import Settings
from app.web.factory import create_app
from app.web.gate import Gate
from app.web.server import Web
from app.web.services import Services
from tests.speech import DATA
from tests.web.hands import sound
from tests.web.visitor import PASSWORD

ENGINE = "Whisper base (built in, draft quality)"
HOSTILE = "<img src=x onerror=alert(1)>"
LONG_NAME = "Протокол заседания правления " * 8 + ".ogg"
SAID = (
    Segment(0.4, 3.9, "Mr. John Dashwood had not the strong feelings of the rest of the family."),
    Segment(4.6, 9.8, "But he was affected by a recommendation of such a nature at such a time."),
    Segment(12.0, 17.5, "He was not an ill-disposed young man, unless to be rather cold-hearted."),
    Segment(18.2, 24.0, "And rather selfish is to be ill-disposed."),
)


class Stage:
    """The store behind the pages, and a worker that is alive while `has_worker` says so."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.queue = house.queue
        self._presence: Presence | None = None

    def start_worker(self) -> None:
        self._presence = Presence(self.house.settings.storage.data_dir, liveness.WORKER)

    def stop_worker(self) -> None:
        if self._presence:
            self._presence.close()
        self._presence = None

    def hand_in(
        self,
        name: str = "interview.m4a",
        data: bytes | None = None,
        *,
        language: str | None = None,
        source: Source = Source.WEB,
        at: datetime | None = None,
    ) -> Job:
        draft = self.house.intake.draft()
        draft.write(sound() if data is None else data)
        return self.house.intake.accept(
            draft,
            source=source,
            display_name=name,
            language=language,
            sender="anonymous",
            now=at or utcnow(),
        ).job

    def claim(self, job: Job) -> Claim:
        """Hold this very job, whatever else waits."""
        passed_over = []
        state = self.queue.get(job.id).state
        while True:
            worker = self._presence.name if self._presence else "worker-gone"
            claim = self.queue.claim(
                state, worker=worker, lease_seconds=3600, max_attempts=5, now=utcnow()
            )
            assert isinstance(claim, Claim), claim
            if claim.job.id == job.id:
                break
            passed_over.append(claim)
        for other in passed_over:
            self.queue.release(other, utcnow())
        return claim

    def work(self, job: Job, progress: float | None) -> Claim:
        """The job's step is running."""
        claim = self.claim(job)
        self.queue.report(claim, progress, utcnow())
        return claim

    def convert(self, job: Job, seconds: float = 27.5) -> None:
        copy = self.house.storage.copy(self.queue.file(job.file))
        result = Converted(copy, seconds, source_is_playable=True)
        assert self.queue.finish(self.claim(job), result, utcnow())

    def begin(self, job: Job, seconds: float = 27.5) -> None:
        """The job is with the speech engine."""
        self.convert(job, seconds)
        assert self.queue.finish(self.claim(job), Started("op", ENGINE, 0), utcnow())

    def finish(self, job: Job, said: tuple[Segment, ...] = SAID, language: str = "en") -> None:
        self.begin(job)
        self.end(self.claim(job), said, language)

    def end(self, claim: Claim, said: tuple[Segment, ...] = SAID, language: str = "en") -> None:
        text = " ".join(segment.text for segment in said)
        result = Recognized(Transcript(text, said), language)
        assert self.queue.finish(claim, result, utcnow())

    def fail(self, job: Job, code: str = "truncated", detail: str = "") -> None:
        assert self.queue.fail(self.claim(job), AppError(code, detail), utcnow())

    def stumble(self, job: Job, code: str = "convert_crashed", seconds: float = 240) -> None:
        assert self.queue.retry(self.claim(job), AppError(code), seconds, utcnow())

    def kill(self, job: Job, code: str = "convert_crashed") -> None:
        """Every attempt fails, and the next claim buries the job."""
        moment = utcnow()
        for _ in range(6):
            moment = later(moment, 400)
            claim = self.queue.claim(
                self.queue.get(job.id).state,
                worker="worker-test",
                lease_seconds=3600,
                max_attempts=5,
                now=moment,
            )
            if isinstance(claim, Claim):
                assert claim.job.id == job.id, "kill() wants a job that is alone in its state"
                self.queue.retry(claim, AppError(code, "signal 11"), 1, moment)
        assert self.queue.get(job.id).state is State.DEAD

    def fill(self) -> dict[str, Job]:
        """One job of each kind, by the name of what it shows."""
        real = (DATA / "english.flac").read_bytes()
        jobs = {}
        jobs["dead"] = self.hand_in("planning meeting.mp4", source=Source.API)
        self.kill(jobs["dead"])
        jobs["failed"] = self.hand_in("обрыв связи.m4a", sound(0.02))
        self.fail(jobs["failed"], "truncated", "moov atom not found")
        jobs["cancelled"] = self.hand_in("wrong file.wav", sound(0.03))
        self.queue.cancel(jobs["cancelled"].id, utcnow())
        jobs["done"] = self.hand_in("Sense and Sensibility.flac", real)
        self.finish(jobs["done"])
        jobs["silent"] = self.hand_in("silence.wav", sound(0.04), source=Source.API)
        self.finish(jobs["silent"], (), "en")
        jobs["long"] = self.hand_in(LONG_NAME, sound(0.05), language="ru")
        self.finish(jobs["long"], (Segment(0, 2, "Добрый день, коллеги."),), "ru")
        jobs["hostile"] = self.hand_in(f"{HOSTILE}.ogg", sound(0.06))
        self.finish(jobs["hostile"], (Segment(0, 2, HOSTILE),))
        jobs["paused"] = self.hand_in("voice message 14.ogg", sound(0.07), source=Source.API)
        self.stumble(jobs["paused"])
        jobs["recognizing"] = self.hand_in("interview.m4a", sound(0.08))
        self.begin(jobs["recognizing"], 1834)
        self.work(jobs["recognizing"], 0.41)
        jobs["converting"] = self.hand_in("лекция 3.mkv", sound(0.09))
        self.work(jobs["converting"], 0.07)
        jobs["next"] = self.hand_in("dictation.ogg", sound(0.1))
        jobs["waiting"] = self.hand_in("call 2026-11-30.wav", sound(0.11), source=Source.API)
        jobs["binned"] = self.hand_in("second take.wav", sound(0.12))
        self.queue.delete(jobs["binned"].id, utcnow())
        return jobs

    def chats(self) -> None:
        """A bot, and a chat of each kind and standing."""
        Bots(self.house.database).know(77, "scribe_bot", False, utcnow())
        chats = Chats(self.house.database)
        for number, (kind, title, access) in enumerate(
            (
                (ChatKind.PRIVATE, "Личный чат", Access.ALLOWED),
                (ChatKind.SUPERGROUP, "Editorial office, the long way round " * 3, Access.UNSET),
                (ChatKind.CHANNEL, HOSTILE, Access.DENIED),
                (ChatKind.GROUP, "Left long ago", Access.UNSET),
            ),
            1,
        ):
            chat = chats.seen(-number, kind, title.strip(), Mode.ALL, later(utcnow(), -number * 60))
            chats.set_access(chat.id, access)
            chats.set_member(chat.id, title != "Left long ago")

    def link(self) -> str:
        """The address of an upload link."""
        wanted = LinkFor(77, 9, 5, None, 9, "en")
        return f"/u/{Links(self.house.database).make(wanted, 3600, utcnow())}"

    def session(self) -> str:
        """The secret of a fresh owner's session, as the cookie holds it."""
        owners = self.house.owners
        if not owners.exists():
            owners.accept_invitation(owners.invite(utcnow()), "scribe", PASSWORD, utcnow())
        return owners.sessions.start(owners.only().id, "test", utcnow())


def free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(data_dir: Path, **intake: object) -> Iterator[tuple[Stage, str]]:
    """A stage and the address of the real server in front of it."""
    settings = Settings.model_validate(
        {
            "storage": {"data_dir": data_dir},
            "server": {"port": free_port(), "shutdown_timeout": 1},
            "intake": intake,
        }
    )
    with ExitStack() as stack:
        house = stack.enter_context(assembly.opened(settings, liveness.WEB))
        app = create_app(
            Services(
                settings=settings,
                database=house.database,
                queue=house.queue,
                storage=house.storage,
                intake=house.intake,
                owners=house.owners,
                workers_alive=house.workers_alive,
            )
        )
        web = Web(app, settings, Gate(settings, house.owners, Links(house.database), utcnow))
        thread = threading.Thread(target=web.run, name="web")
        thread.start()
        stack.callback(thread.join)
        stack.callback(web.stop)
        yield Stage(house), f"http://127.0.0.1:{settings.server.port}"
