"""What the bot says in its own name: hints, answers to commands and buttons.

It is said in the order it was asked for, by a thread of its own: whoever asks waits only a moment,
so that a rest of an hour does not keep the next recording from being taken.
"""

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from app.telegram.api import BotApi, Buttons
from app.telegram.errors import TelegramError
from app.telegram.outgoing import Outgoing, Stopped
from app.telegram.pace import Urgency

log = logging.getLogger(__name__)

_WAIT_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0
_WORDS_AT_MOST = 1000
_ANSWER_LENGTH = 200
_LOOK_SECONDS = 0.5


class Voice:
    """Says things; no call raises, and each ends when it was said, given up, or a moment later."""

    def __init__(self, api: BotApi, outgoing: Outgoing, stopping: threading.Event) -> None:
        self._api = api
        self._outgoing = outgoing
        self._stopping = stopping
        self._words: queue.Queue[tuple[Callable[[], object], Future[None]]] = queue.Queue(
            _WORDS_AT_MOST
        )

    def say(
        self,
        chat: int,
        text: str,
        *,
        thread: int | None = None,
        reply_to: int | None = None,
        buttons: Buttons = (),
    ) -> None:
        """Send a message."""

        def act(target: int) -> int:
            return self._api.send_message(
                target, text, thread_id=thread, reply_to=reply_to, buttons=buttons
            )

        self._wait_for(lambda: self._outgoing.send(chat, Urgency.WORD, act, _PATIENCE_SECONDS))

    def send_file(
        self,
        chat: int,
        name: str,
        data: bytes,
        *,
        thread: int | None = None,
        reply_to: int | None = None,
    ) -> None:
        """Send a file."""

        def act(target: int) -> int:
            return self._api.send_document(target, name, data, thread_id=thread, reply_to=reply_to)

        self._wait_for(lambda: self._outgoing.send(chat, Urgency.WORD, act, _PATIENCE_SECONDS))

    def answer(self, callback: str, text: str = "") -> None:
        """Tell whoever pressed a button that it was heard; Telegram forgets it in a minute."""
        self._wait_for(lambda: self._api.answer_callback(callback, text[:_ANSWER_LENGTH]))

    def run(self) -> None:
        """Say what there is to say until the process stops."""
        while not self._stopping.is_set():
            with suppress(queue.Empty):
                word, said = self._words.get(timeout=_LOOK_SECONDS)
                _speak(word)
                said.set_result(None)

    def _wait_for(self, word: Callable[[], object]) -> None:
        said: Future[None] = Future()
        try:
            self._words.put_nowait((word, said))
        except queue.Full:
            log.warning("too much is to be said: an answer is left out")
            return
        with suppress(TimeoutError):
            said.result(_WAIT_SECONDS)


def _speak(word: Callable[[], object]) -> None:
    try:
        word()
    except Stopped:
        return
    except TelegramError as error:
        log.warning("an answer was not said", extra={"reason": str(error)})
    except Exception:
        log.exception("an answer was not said")
