"""The bot's process: receiving and sending in threads of their own, from its start to its end."""

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import closing

from app import assembly, liveness, metrics
from app.assembly import House
from app.bell import Bell
from app.chats import Chats, JobMessages
from app.clock import utcnow
from app.delivery import Delivery, give_up
from app.process import EXIT_BAD_SETTINGS, EXIT_FAILED, stop_signals
from app.queue.replies import Replies
from app.settings import Settings
from app.telegram.api import BotApi, build
from app.telegram.errors import NoSuchBot
from app.telegram.messenger import ChatMessenger
from app.telegram.outgoing import Outgoing, Stopped
from app.telegram.pace import Pace
from app.telegram.receiver import Receiver
from app.telegram.status import Describer, StatusBoard
from app.telegram.voice import Voice

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
"""How often what nobody rings for is looked at: progress, and replies sent again by the owner."""

_GLANCE_SECONDS = 0.3
"""A recording is acknowledged at once: the bell rings before its message is known."""


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; gives the exit code.

    78 without a token, or when Telegram knows no bot with it (P27).
    """
    if settings.telegram.token is None:
        log.error("there is no bot: set telegram.token to the token that @BotFather gives")
        return EXIT_BAD_SETTINGS
    api = build(settings)
    with assembly.opened(settings, liveness.BOT) as house:
        liveness.sweep(settings.storage.data_dir)
        metrics.serve(settings.telegram.metrics_port, "telegram.metrics_port")
        with closing(Bell(settings.storage.data_dir, house.name)) as own_bell:
            return Bot(house, api, own_bell).run()


class Bot:
    """The parts of the bot, each in its thread."""

    def __init__(self, house: House, api: BotApi, own_bell: Bell) -> None:
        self._house = house
        self._api = api
        self._bell = own_bell
        self._stopping = threading.Event()
        self._has_news = threading.Event()
        self._has_moved = threading.Event()
        self._is_no_bot = False
        self._outgoing = Outgoing(Pace(), Chats(house.database), self._stopping)
        self._voice = Voice(api, self._outgoing, self._stopping)
        self._describe = Describer(house.queue, house.workers_alive)
        self._receiver = Receiver(house, api, self._voice, self._describe)
        self._replies = Replies(house.database, house.name)

    def run(self) -> int:
        """Run all parts until a signal; gives the exit code."""
        signals = stop_signals()
        parts = (self._receive, self._voice.run, self._listen, self._settle, self._send, self._tell)
        threads = [
            threading.Thread(target=part, name=part.__name__.strip("_"), daemon=True)
            for part in parts
        ]
        for thread in threads:
            thread.start()
        log.info("the bot is started")
        has_ended = False
        while not has_ended and not select.select([signals], [], [], _LOOK_SECONDS)[0]:
            has_ended = not all(thread.is_alive() for thread in threads)
        self._stop(threads)
        if self._is_no_bot:
            return EXIT_BAD_SETTINGS
        return EXIT_FAILED if has_ended else 0

    def _receive(self) -> None:
        try:
            self._receiver.run(self._stopping)
        except NoSuchBot:
            self._is_no_bot = True
            log.error(
                "Telegram knows no bot with this token: set telegram.token anew, as @BotFather"
                " gives it"
            )

    def _listen(self) -> None:
        """Pass on every ring: one thread alone may wait for a bell."""
        while not self._stopping.is_set():
            self._bell.wait(_LOOK_SECONDS)
            self._has_news.set()
            self._has_moved.set()

    def _settle(self) -> None:
        """Settle what ended processes were sending, and everything while Telegram is away (P24)."""
        while not self._stopping.is_set():
            _unharmed(lambda: self._give_up(is_patient=self._receiver.is_up.is_set()))
            self._stopping.wait(_LOOK_SECONDS)

    def _give_up(self, *, is_patient: bool) -> None:
        data_dir = self._house.settings.storage.data_dir
        give_up(
            self._replies,
            is_gone=lambda name: name != self._house.name and liveness.is_gone(data_dir, name),
            wait_seconds=None if is_patient else self._house.settings.telegram.delivery_wait,
            now=utcnow(),
        )

    def _send(self) -> None:
        """Send the replies that are owed, one after another."""
        bot = self._wait_until_up()
        if bot is None:
            return
        # What waited too long for a bot is not delivered late (P47).
        _unharmed(lambda: self._give_up(is_patient=False))
        messages = JobMessages(self._house.database)
        telegram = self._house.settings.telegram
        messenger = ChatMessenger(self._api, self._outgoing, messages, telegram, bot, utcnow)
        delivery = Delivery(self._replies, messenger, utcnow)
        while not self._stopping.is_set():
            if _unharmed(delivery.turn):
                self._has_moved.set()
            else:
                self._has_news.wait(_LOOK_SECONDS)
                self._has_news.clear()

    def _tell(self) -> None:
        """Keep the status messages true."""
        bot = self._wait_until_up()
        if bot is None:
            return
        board = StatusBoard(
            self._api,
            self._outgoing,
            JobMessages(self._house.database),
            self._house.queue,
            self._replies,
            self._describe,
            bot,
            utcnow,
        )
        while not self._stopping.is_set():
            self._has_moved.wait(_GLANCE_SECONDS)
            self._has_moved.clear()
            _unharmed(board.turn)

    def _wait_until_up(self) -> int | None:
        """The bot's number, once Telegram has told it; None when we stop before."""
        while not self._stopping.is_set():
            if self._receiver.is_up.wait(_LOOK_SECONDS) and self._receiver.bot:
                return self._receiver.bot.id
        return None

    def _stop(self, threads: list[threading.Thread]) -> None:
        """End the parts; what is being sent has the time of server.force_shutdown_timeout."""
        deadline = time.monotonic() + self._house.settings.server.force_shutdown_timeout
        self._stopping.set()
        self._api.stop_waiting()
        self._bell.strike()
        self._has_news.set()
        self._has_moved.set()
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        if any(thread.is_alive() for thread in threads):
            # A reply that is being sent becomes doubtful as soon as this process is gone.
            log.error("a part of the bot did not end in time; leaving without it")
            logging.shutdown()
            os._exit(EXIT_BAD_SETTINGS if self._is_no_bot else EXIT_FAILED)
        log.info("stopped")


def _unharmed(act: Callable[[], bool | None]) -> bool:
    """Do something again and again: a fault of the store is logged, and is no end."""
    try:
        return bool(act())
    except Stopped:
        return False
    except Exception:
        log.exception("a part of the bot stumbled")
        return False
