"""Receives what is sent to the bot, for as long as it is let, whatever Telegram does meanwhile.

The next question for news confirms all before it, so it is asked only when the jobs of the last
answer are committed (P45); after a kill the same updates come again and give the same jobs (P46).
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from app import metrics
from app.assembly import House
from app.chats import Bot, Bots, Chats, JobMessages, Links, Trouble
from app.clock import utcnow
from app.errors import AppError
from app.i18n import LANGUAGES
from app.job import Job
from app.telegram import words
from app.telegram.admission import Admission
from app.telegram.api import BotApi
from app.telegram.commands import Commands
from app.telegram.desk import Desk
from app.telegram.errors import Busy, NoSuchBot, Refused, TelegramError
from app.telegram.fetch import Fetcher, StoppedError
from app.telegram.recordings import Recordings
from app.telegram.talk import HeldError, Talk
from app.telegram.voice import Voice
from app.telegram.webhook import Webhook, secret_of

log = logging.getLogger(__name__)

INTAKE = "telegram"
PAUSE_CAP_SECONDS = 60.0
RENUMBERED_AFTER = timedelta(days=6)
"""After a week of silence Telegram may begin its numbers anew, and a greater one of ours would
confirm what was never read."""

_CONFLICT = 409
_CHECK_SECONDS = 60.0
_TOLD = {
    Trouble.UNREACHABLE: "Telegram cannot be reached",
    Trouble.CONFLICT: "another program reads this bot's updates: end it, or use another bot",
    Trouble.REFUSED: "Telegram refuses to tell the bot its news",
    Trouble.STUCK: "what is sent by Telegram cannot be taken",
}


class Receiver:
    """The receiving half of the bot's process; describe says how a job stands, in a language."""

    def __init__(
        self,
        house: House,
        api: BotApi,
        voice: Voice,
        describe: Callable[[Job, str], str],
        clock: Callable[[], datetime] = utcnow,
    ) -> None:
        self._house = house
        self._api = api
        self._voice = voice
        self._describe = describe
        self._clock = clock
        self._bots = Bots(house.database)
        self.is_up = threading.Event()
        """Set once Telegram has answered in this run."""
        self._bot: Bot | None = None
        self._trouble: Trouble | None = None
        self._pause_seconds = 0.0
        self._gauge = metrics.intake_up.labels(intake=INTAKE)

    @property
    def bot(self) -> Bot | None:
        """The bot, once Telegram has said which it is."""
        return self._bot

    def run(self, stopping: threading.Event) -> None:
        """Receive until stopping is set; NoSuchBot when Telegram's first answer says so (P27)."""
        self._gauge.set(0)
        try:
            bot = self._connect(stopping)
            if bot is None:
                return
            talk = self._talk(bot, stopping)
            if self._house.settings.telegram.mode == "webhook":
                self._listen(talk, stopping)
            else:
                self._poll(bot, talk, stopping)
        finally:
            self._gauge.set(0)

    def _connect(self, stopping: threading.Event) -> Bot | None:
        """Ask Telegram who we are until it answers; None when we stop before."""
        while not stopping.is_set():
            try:
                me = self._api.me()
                self._choose_mode()
            except NoSuchBot:
                raise
            except TelegramError as error:
                self._note(_trouble_of(error), str(error))
                self._rest(stopping, error)
                continue
            # A menu is a nicety: what is sent is received meanwhile, and without it.
            threading.Thread(target=self._offer_commands, name="menu", daemon=True).start()
            self._bot = self._bots.know(me.id, me.username, me.sees_all, self._clock())
            self.is_up.set()
            log.info("Telegram knows the bot", extra={"bot": me.username})
            return self._bot
        return None

    def _choose_mode(self) -> None:
        settings = self._house.settings.telegram
        if settings.mode == "webhook" and settings.token:
            self._api.set_webhook(settings.webhook_url, secret_of(settings.token))
        else:
            self._api.delete_webhook()

    def _offer_commands(self) -> None:
        with suppress(TelegramError):
            for language in (None, *LANGUAGES):
                menu = [
                    (name, words.say(language or "en", line))
                    for name, line in words.COMMANDS.items()
                ]
                self._api.set_commands(menu, language)

    def _talk(self, bot: Bot, stopping: threading.Event) -> Talk:
        house, chats = self._house, Chats(self._house.database)
        desk = Desk(
            bot=bot,
            settings=house.settings,
            queue=house.queue,
            storage=house.storage,
            intake=house.intake,
            chats=chats,
            messages=JobMessages(house.database),
            links=Links(house.database),
            admission=Admission(house.settings.telegram, chats),
            voice=self._voice,
            clock=self._clock,
        )
        recordings = Recordings(desk, Fetcher(self._api, house.intake.draft, stopping))
        commands = Commands(desk, self._api, recordings, self._describe)
        return Talk(desk, recordings, commands)

    def _poll(self, bot: Bot, talk: Talk, stopping: threading.Event) -> None:
        wait_seconds = self._house.settings.telegram.update_timeout

        def done(number: int) -> None:
            self._bots.done(bot.id, number, self._clock())

        while not stopping.is_set():
            try:
                updates = self._api.updates(self._offset(bot), wait_seconds)
                self._heard()
                talk.deal(updates, done)
            except StoppedError:
                return
            except TelegramError as error:
                if stopping.is_set():
                    return
                self._note(_trouble_of(error), str(error))
                self._leave_webhook(error)
                self._rest(stopping, error)
            except HeldError as held:
                self._note(held.trouble, held.reason)
                self._rest(stopping)
            except AppError as error:
                self._note(Trouble.STUCK, error.code)
                self._rest(stopping)
            except Exception:
                # Nothing is confirmed, so nothing is lost.
                log.exception("receiving failed and will be tried again")
                self._note(Trouble.STUCK, "internal")
                self._rest(stopping)
            else:
                self._well()

    def _listen(self, talk: Talk, stopping: threading.Event) -> None:
        settings = self._house.settings.telegram
        assert settings.token is not None  # noqa: S101 - there is no bot without one
        webhook = Webhook(talk, secret_of(settings.token), settings.webhook_port, self._note)
        with webhook.listening():
            self._well()
            while not stopping.wait(_CHECK_SECONDS):
                try:
                    self._api.me()
                except TelegramError as error:
                    self._note(_trouble_of(error), str(error))
                else:
                    self._well()

    def _offset(self, bot: Bot) -> int:
        known = self._bots.get(bot.id) or bot
        if known.read_up_to == 0 or self._clock() - known.updated > RENUMBERED_AFTER:
            return 0
        return known.read_up_to + 1

    def _leave_webhook(self, error: TelegramError) -> None:
        """While a webhook stands, asking for news is refused: somebody has set one since."""
        if _is_conflict(error) and "webhook" in str(error).lower():
            with suppress(TelegramError):
                self._api.delete_webhook()

    def _heard(self) -> None:
        """Telegram answered; that what it sent is taken, is seen afterwards."""
        if self._trouble is not Trouble.STUCK:
            self._well()

    def _well(self) -> None:
        if self._trouble:
            log.info("what is sent by Telegram is received again")
        self._trouble = None
        self._pause_seconds = 0.0
        self._gauge.set(1)
        if self._bot:
            self._bot = self._bots.heard(self._bot, self._clock())

    def _note(self, trouble: Trouble, reason: str) -> None:
        """Say once that something is wrong, where the owner looks: log, metrics and panel."""
        self._gauge.set(0)
        if self._trouble is not trouble:
            log.warning(_TOLD[trouble], extra={"reason": reason})
        self._trouble = trouble
        try:
            if self._bot:
                self._bot = self._bots.in_trouble(self._bot, trouble)
        except Exception:
            # A full disk is noted on no disk; the log and the gauge have it.
            log.debug("the trouble could not be noted", exc_info=True)

    def _rest(self, stopping: threading.Event, error: TelegramError | None = None) -> None:
        """Wait before the next try: 1, 2, 4 ... seconds, or as long as Telegram asks for."""
        self._pause_seconds = min(max(2 * self._pause_seconds, 1.0), PAUSE_CAP_SECONDS)
        asked = error.retry_after_seconds if isinstance(error, Busy) else 0.0
        stopping.wait(max(self._pause_seconds, asked))


def _trouble_of(error: TelegramError) -> Trouble:
    if _is_conflict(error):
        return Trouble.CONFLICT
    return Trouble.REFUSED if isinstance(error, Refused) else Trouble.UNREACHABLE


def _is_conflict(error: TelegramError) -> bool:
    return isinstance(error, Refused) and error.error_code == _CONFLICT
