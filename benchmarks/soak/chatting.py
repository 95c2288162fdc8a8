"""People who send voice messages to a bot that is killed, and what they must find in the end."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.db import Database
from tests.telegram.double import Telegram
from tests.telegram.double.messages import Message
from tests.telegram.double.people import Person
from tests.telegram.front import BotProcess

_PAUSE_SECONDS = 0.05
_REQUEST_TIMEOUT = "20"
"""Seconds; so long that doubt comes from the kills and not from a busy machine."""

MessageKey = tuple[int, int]
"""A chat's number and a message's in it."""


class Talker(threading.Thread):
    """Sends one voice message after another until stopped, but waits while `is_full` says so.

    sent holds what Telegram has taken: from then on it may not be lost.
    """

    def __init__(
        self,
        person: Person,
        recordings: Sequence[Path],
        is_full: Callable[[], bool],
        stopping: threading.Event,
    ) -> None:
        super().__init__(name=person.first_name)
        self._person = person
        self._recordings = recordings
        self._is_full = is_full
        self._stopping = stopping
        self.sent: list[Message] = []

    def run(self) -> None:
        """Send until stopped."""
        while not self._stopping.wait(_PAUSE_SECONDS):
            if not self._is_full():
                recording = self._recordings[len(self.sent) % len(self._recordings)]
                self.sent.append(self._person.sends_voice(recording))


class Door:
    """`pisar bot` as a process before a Telegram that outlives it."""

    def __init__(self, data_dir: Path, telegram: Telegram) -> None:
        self.telegram = telegram
        self._data_dir = data_dir
        self._process = self._start()

    def kill(self) -> None:
        """End it as a power cut would, and start it again."""
        self._process.kill()
        self._process = self._start()

    def stop(self) -> None:
        """End it, in order where it can."""
        try:
            self._process.stop()
        finally:
            if self._process.process.poll() is None:
                self._process.kill()

    def untaken(self) -> int:
        """How many updates the bot has not confirmed."""
        with self.telegram.network.lock:
            return len(self.telegram.network.updates.pending())

    def _start(self) -> BotProcess:
        return BotProcess(self._data_dir, self.telegram, TELEGRAM__REQUEST_TIMEOUT=_REQUEST_TIMEOUT)


@contextmanager
def opened(data_dir: Path) -> Iterator[Door]:
    """A bot before a Telegram of its own; both are gone afterwards."""
    with Telegram() as telegram:
        door = Door(data_dir, telegram)
        try:
            yield door
        finally:
            door.stop()


def counted(
    database: Database, telegram: Telegram, talkers: Sequence[Talker]
) -> tuple[Mapping[str, object], Mapping[str, Sequence[str]]]:
    """What was sent and answered, and what must be nought; call it when nothing is under way."""
    sent = Counter((message.chat.id, message.id) for talker in talkers for message in talker.sent)
    with database.read() as connection:
        jobs = [tuple(row) for row in connection.execute(_JOBS)]
        replies = [tuple(row) for row in connection.execute(_REPLIES)]
    places: dict[str, MessageKey] = {job: (chat, message) for job, chat, message in jobs}
    taken = Counter(places.values())
    arrived = Counter(_texts(telegram))
    states = Counter(state for _, _, state in replies)
    done = {job for job, verdict, state in replies if verdict == "done" and state == "sent"}
    facts = {
        "voice messages": sent.total(),
        "their texts that arrived": arrived.total(),
        **{f"replies {state}": states[state] for state in ("sent", "undelivered")},
        "replies in doubt (P47)": states["doubtful"],
    }
    nought = {
        "messages without a job": _named(sent - taken),
        "messages with two jobs": _named(taken - sent),
        "ended without a reply": sorted(places.keys() - {job for job, _, _ in replies}),
        "replies left owed or being sent": [j for j, _, s in replies if s in ("owed", "sending")],
        "texts that arrived twice": [job for (job, _), n in arrived.items() if n > 1],
        "texts that answer another message": [
            job for job, place in arrived if places.get(job) != place
        ],
        "sent, but never arrived": sorted(done - {job for job, _ in arrived}),
    }
    return facts, nought


def _texts(telegram: Telegram) -> Iterator[tuple[str, MessageKey]]:
    """Each text that the bot put into a chat: its job by its button, and what it answers."""
    for call in telegram.journal.done("sendMessage", "sendDocument"):
        result = (call.answer or {})["result"]
        rows = result.get("reply_markup", {}).get("inline_keyboard", [])
        for button in (button for row in rows for button in row):
            kind, _, job = button.get("callback_data", "").partition(":")
            if kind == "srt":
                answered = result.get("reply_to_message", {}).get("message_id", 0)
                yield job, (result["chat"]["id"], answered)


def _named(messages: Counter[MessageKey]) -> list[str]:
    return [json.dumps(message) for message in messages.elements()]


_JOBS = """
SELECT id, tg_chat_id, tg_reply_message_id FROM transcribe_jobs WHERE source = 'telegram'
"""
_REPLIES = """
SELECT job, verdict, replies.state FROM replies
JOIN transcribe_jobs ON transcribe_jobs.id = job
WHERE source = 'telegram'
"""
