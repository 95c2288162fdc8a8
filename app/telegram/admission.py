"""Who may use the bot: the owner's word on a chat, else the numbers of the settings."""

from app.chats import Access, Chat, Chats
from app.settings import EVERYBODY, Telegram
from app.telegram.incoming import Place


class Admission:
    """Judges by the chat, and in a group also by the person; closed when nothing opens it."""

    def __init__(self, settings: Telegram, chats: Chats) -> None:
        self._allow = settings.allow
        self._chats = chats

    def may(self, place: Place, chat: Chat) -> bool:
        """True when what is sent from here is taken; a denied chat or person is never."""
        words = [chat.access]
        numbers = {chat.id}
        if place.person and place.person.id != chat.id:
            numbers.add(place.person.id)
            known = self._chats.find(place.person.id)
            words.append(known.access if known else Access.UNSET)
        if Access.DENIED in words:
            return False
        if self._allow == EVERYBODY or Access.ALLOWED in words:
            return True
        return not numbers.isdisjoint(self._allow)
