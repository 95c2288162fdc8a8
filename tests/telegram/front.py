"""The receiving half of the bot at work in threads of the test, before a Telegram of the test."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from app import assembly, liveness
from app.assembly import House
from app.chats import Bots, Chats, JobMessages
from app.clock import utcnow
from app.job import Job
from app.queue.port import JobFilter
from app.resources import ROOT
from app.settings import Settings, load
from app.telegram.api import build
from app.telegram.outgoing import Outgoing
from app.telegram.pace import Pace
from app.telegram.receiver import Receiver
from app.telegram.status import Describer
from app.telegram.voice import Voice
from tests.telegram.double import Telegram

OGG = b"OggS" + bytes(200)


def environment(data_dir: Path, telegram: Telegram, **more: str) -> dict[str, str]:
    """A bot before this Telegram that serves everybody; more are PISAR_ variables."""
    environ = {
        "STORAGE__DATA_DIR": str(data_dir),
        "TELEGRAM__TOKEN": telegram.token,
        "TELEGRAM__API_URL": telegram.api_url,
        "TELEGRAM__ALLOW": "everybody",
        "TELEGRAM__UPDATE_TIMEOUT": "2",
        "TELEGRAM__REQUEST_TIMEOUT": "2",
        "TELEGRAM__METRICS_PORT": "0",
        "SERVER__PUBLIC_URL": "https://pisar.example",
        "LOG__FORMAT": "json",
    }
    return {f"PISAR_{key}": value for key, value in (environ | more).items()}


class Front:
    """A receiver that runs; jobs() and the stores are what it has made."""

    def __init__(self, house: House, telegram: Telegram, clock: Callable[[], datetime]) -> None:
        self.house = house
        self.telegram = telegram
        self.bots = Bots(house.database)
        self.chats = Chats(house.database)
        self.messages = JobMessages(house.database)
        self.stopping = threading.Event()
        self.api = build(house.settings)
        outgoing = Outgoing(Pace(), self.chats, self.stopping)
        voice = Voice(self.api, outgoing, self.stopping)
        describe = Describer(house.queue, lambda: 1)
        self.receiver = Receiver(house, self.api, voice, describe, clock)
        self.ended_by: BaseException | None = None
        self._threads = [threading.Thread(target=part) for part in (voice.run, self._receive)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self.api.stop_waiting()
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive()

    def jobs(self) -> list[Job]:
        """All jobs, the oldest first."""
        page = self.house.queue.page(JobFilter(), before=None, limit=200)
        return list(reversed(page.jobs))

    def waits_for_jobs(self, count: int) -> list[Job]:
        self.telegram.waits_for(lambda: len(self.jobs()) >= count, f"{count} jobs")
        found = self.jobs()
        assert len(found) == count
        return found

    def is_idle(self) -> bool:
        """True when Telegram has nothing more that is not confirmed."""
        with self.telegram.network.lock:
            return not self.telegram.network.updates.pending()

    def waits_until_idle(self, seconds: float = 20) -> None:
        """Until all that was sent is dealt with, and confirmed."""
        self.telegram.waits_for(self.is_idle, "all updates are confirmed", seconds)

    def _receive(self) -> None:
        try:
            self.receiver.run(self.stopping)
        except BaseException as error:
            self.ended_by = error


@contextmanager
def front(
    data_dir: Path,
    telegram: Telegram,
    clock: Callable[[], datetime] = utcnow,
    **more: str,
) -> Iterator[Front]:
    """A receiver that runs until the block is left."""
    settings: Settings = load(environment(data_dir, telegram, **more))
    with ExitStack() as stack:
        house = stack.enter_context(assembly.opened(settings, liveness.BOT))
        found = Front(house, telegram, clock)
        found.start()
        stack.callback(found.stop)
        yield found


class BotProcess:
    """`pisar bot` as a process of its own."""

    def __init__(self, data_dir: Path, telegram: Telegram, **more: str) -> None:
        self.log_path = data_dir.parent / "bot.log"
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app", "bot"],
                cwd=ROOT,
                env=os.environ | environment(data_dir, telegram, **more),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(30)


@contextmanager
def bot_process(data_dir: Path, telegram: Telegram, **more: Any) -> Iterator[BotProcess]:
    """A bot's process that is gone afterwards."""
    found = BotProcess(data_dir, telegram, **more)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.kill()
