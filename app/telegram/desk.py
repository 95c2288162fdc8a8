"""What the parts of the receiver work with, and what they all ask: which chat, which language."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.chats import Bot, Chat, ChatKind, Chats, JobMessages, Links, Mode
from app.i18n import DEFAULT_LANGUAGE
from app.intake import Intake
from app.queue.port import Queue
from app.settings import Settings
from app.storage.port import Storage
from app.telegram import words
from app.telegram.admission import Admission
from app.telegram.api import Buttons
from app.telegram.incoming import Place
from app.telegram.voice import Voice

_SEEN_SECONDS = 60.0


@dataclass(frozen=True)
class Desk:
    """The doors behind the receiver, and the bot that it is."""

    bot: Bot
    settings: Settings
    queue: Queue
    storage: Storage
    intake: Intake
    chats: Chats
    messages: JobMessages
    links: Links
    admission: Admission
    voice: Voice
    clock: Callable[[], datetime]

    def chat(self, place: Place) -> Chat:
        """The chat of a place, noted as heard of; not at each message, as that costs a sync."""
        known, now = self.chats.find(place.chat), self.clock()
        if (
            known
            and known.is_member
            and (known.kind, known.title) == (place.kind, place.title)
            and abs((now - known.last_seen).total_seconds()) < _SEEN_SECONDS
        ):
            return known
        first = Mode.ALL if place.is_private else Mode(self.settings.telegram.group_mode)
        return self.chats.seen(place.chat, ChatKind(place.kind), place.title, first, now)

    def language(self, place: Place, chat: Chat) -> str:
        """The language of the answers: what /lang chose, else the person's own."""
        own = place.person.language if place.person else None
        return chat.language or own or DEFAULT_LANGUAGE

    def tell(
        self,
        place: Place,
        sentence: str,
        *,
        reply_to: int | None = None,
        buttons: Buttons = (),
        places: Mapping[str, str | int] | None = None,
    ) -> None:
        """Say a sentence of the catalogue where something happened, in its language."""
        language = self.language(place, self.chat(place))
        text = words.say(language, sentence, **(places or {}))
        self.voice.say(place.chat, text, thread=place.thread, reply_to=reply_to, buttons=buttons)
