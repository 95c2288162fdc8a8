"""A recording that was sent: judged, fetched, handed in; or its sender is told why not."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto
from functools import partial

from app.chats import Chat, JobMessage, LinkFor, Mode
from app.errors import KINDS, AppError
from app.intake import Addressee
from app.job import Source
from app.storage.port import Draft
from app.telegram import words
from app.telegram.desk import Desk
from app.telegram.errors import Refused
from app.telegram.fetch import Fetch, Fetcher
from app.telegram.incoming import Sent

HANDED_OVER_BYTES = 20 * 1024**2
"""What Telegram's own Bot API server hands to bots at most (getFile)."""

REFUSAL_PAUSE_SECONDS = 600.0
"""A stranger is told once in this time that the bot is closed."""


class _Fate(Enum):
    """What becomes of a recording."""

    TAKE = auto()
    PASS = auto()
    CLOSED = auto()
    TOO_LONG = auto()
    TOO_LARGE = auto()
    BY_LINK = auto()


class Recordings:
    """Takes recordings in, each message once."""

    def __init__(self, desk: Desk, fetcher: Fetcher) -> None:
        self._desk = desk
        self._fetcher = fetcher

    def begin(self, sent: Sent) -> tuple[Callable[[], None], Callable[[], None]]:
        """Begin to fetch what will be taken; gives what takes it in its turn, and what drops it."""
        if self._fate(sent) is not _Fate.TAKE:
            return partial(self.take, sent), lambda: None
        fetch = self._fetch(sent)
        return partial(self.take, sent, fetch), fetch.drop

    def take(self, sent: Sent, fetch: Fetch | None = None) -> None:
        """Take a recording, or say why not; fetch is its file when it is on the way already."""
        # Judged again: what came before it in the same batch may have changed the chat.
        fate = self._fate(sent)
        if fate is _Fate.TAKE:
            self._take(sent, fetch or self._fetch(sent))
        elif fate is _Fate.CLOSED:
            self._refuse(sent)
        elif fate is _Fate.BY_LINK:
            self._offer_link(sent)
        elif fate is not _Fate.PASS:
            code = "too_long" if fate is _Fate.TOO_LONG else "too_large"
            self._tell(sent, KINDS[code].sentence)

    def take_asked(self, sent: Sent) -> None:
        """Take a recording that somebody asks for the text of."""
        if self._is_known(sent):
            self._tell(sent, words.IS_KNOWN)
        elif self._desk.chat(sent.place).mode is Mode.OFF:
            self._tell(sent, words.NOT_HERE)
        else:
            self.take(replace(sent, is_asked=True))

    def give_up(self, sent: Sent, sentence: str) -> None:
        """Tell the sender that the recording was not taken, after all tries."""
        self._tell(sent, sentence)

    def _fate(self, sent: Sent) -> _Fate:
        settings, recording = self._desk.settings, sent.recording
        chat = self._desk.chat(sent.place)
        if not self._desk.admission.may(sent.place, chat):
            return _Fate.CLOSED if chat.is_private else _Fate.PASS
        is_wanted = chat.mode is Mode.ALL or (chat.mode is Mode.ON_REQUEST and sent.is_asked)
        if not is_wanted or self._is_known(sent):
            return _Fate.PASS
        if (recording.seconds or 0) > settings.intake.max_duration:
            return _Fate.TOO_LONG
        if (recording.size or 0) > int(settings.intake.max_size):
            return _Fate.TOO_LARGE
        if (recording.size or 0) > HANDED_OVER_BYTES and not settings.telegram.local:
            return _Fate.BY_LINK
        return _Fate.TAKE

    def _take(self, sent: Sent, fetch: Fetch) -> None:
        try:
            self._accept(sent, fetch.take())
        except Refused as refusal:
            if "too big" not in refusal.description.lower():
                raise
            self._offer_link(sent)
        except AppError as error:
            if not error.permanent:
                raise
            # In a group a document that holds no sound is none of our business (CT23).
            if sent.place.is_private or error.code != "not_media":
                self._tell(sent, error.message)

    def _accept(self, sent: Sent, draft: Draft) -> None:
        desk, now = self._desk, self._desk.clock()
        language = desk.language(sent.place, desk.chat(sent.place))
        addressee = Addressee(desk.bot.id, sent.place.chat, sent.message)
        name = sent.recording.name or words.say(language, words.KIND_NAMES[sent.recording.kind])
        job = desk.intake.accept(
            draft,
            source=Source.TELEGRAM,
            display_name=name,
            language=None,
            sender=addressee.sender,
            addressee=addressee,
            now=now,
        ).job
        person = sent.place.person
        desk.messages.add(
            JobMessage(
                job=job.id,
                bot=desk.bot.id,
                chat=sent.place.chat,
                message=sent.message,
                thread=sent.place.thread,
                album=sent.album,
                person=person.id if person else None,
                language=language,
            ),
            now,
        )

    def _offer_link(self, sent: Sent) -> None:
        desk, place = self._desk, sent.place
        language = desk.language(place, desk.chat(place))
        size = words.file_size(language, HANDED_OVER_BYTES)
        public_url = desk.settings.server.public_url.rstrip("/")
        if not public_url:
            self._tell(sent, words.LARGE, size=size)
            return
        person = place.person
        wanted = LinkFor(
            bot=desk.bot.id,
            chat=place.chat,
            message=sent.message,
            thread=place.thread,
            person=person.id if person else None,
            language=language,
        )
        lifetime = desk.settings.telegram.link_lifetime
        secret = desk.links.make(wanted, lifetime, desk.clock())
        time = words.lasting(language, lifetime)
        self._tell(sent, words.LARGE_LINK, size=size, time=time, url=f"{public_url}/u/{secret}")

    def _refuse(self, sent: Sent) -> None:
        chat: Chat = self._desk.chat(sent.place)
        if self._desk.chats.may_refuse(chat.id, REFUSAL_PAUSE_SECONDS, self._desk.clock()):
            self._tell(sent, words.CLOSED, id=chat.id)

    def _is_known(self, sent: Sent) -> bool:
        desk = self._desk
        return desk.messages.at(desk.bot.id, sent.place.chat, sent.message) is not None

    def _fetch(self, sent: Sent) -> Fetch:
        return self._fetcher.begin(sent.recording, only_known=not sent.place.is_private)

    def _tell(self, sent: Sent, sentence: str, **places: str | int) -> None:
        self._desk.tell(sent.place, sentence, reply_to=sent.message, places=places)
