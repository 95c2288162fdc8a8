"""Deals with updates in their order: each is done, durably, before the next one counts.

What cannot be done now is held: the update stays Telegram's until it can. What can never be done
is told to its sender, logged once, and passed by, so that one bad update stops nobody else.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from app.chats import Trouble
from app.errors import KINDS, AppError
from app.telegram import words
from app.telegram.commands import Commands
from app.telegram.desk import Desk
from app.telegram.errors import TelegramError
from app.telegram.fetch import StoppedError
from app.telegram.incoming import (
    Chatter,
    Command,
    MalformedError,
    Meaning,
    Membership,
    Moved,
    Press,
    Sent,
    read,
    update_id,
)
from app.telegram.recordings import Recordings

log = logging.getLogger(__name__)

AHEAD = 8
"""How many updates are looked at ahead, so that the files of an album come at once."""

FETCH_TRIES = 7
"""How often a file is asked for while Telegram answers otherwise: about a minute, with the pauses.

Longer would hold up everybody; the sender is then asked to send it again."""

_TRIES = 2
"""How often an update is tried that ends in an error nobody foresaw."""


class HeldError(Exception):
    """An update must wait, and all after it."""

    def __init__(self, trouble: Trouble, reason: str) -> None:
        super().__init__(reason)
        self.trouble = trouble
        self.reason = reason


@dataclass(frozen=True)
class Task:
    """What an update asks for, begun: end() does it in its turn, drop() forgets it."""

    number: int
    meaning: Meaning | None
    end: Callable[[], None]
    drop: Callable[[], None]


class Talk:
    """Does what updates ask for."""

    def __init__(self, desk: Desk, recordings: Recordings, commands: Commands) -> None:
        self._desk = desk
        self._recordings = recordings
        self._commands = commands
        self._tries: dict[int, int] = {}

    def deal(self, updates: Sequence[object], done: Callable[[int], None]) -> None:
        """Deal with updates, done() being told the number of each; the first that waits ends it.

        HeldError when it must wait for better times, StoppedError when we stop.
        """
        dealt = 0
        for start in range(0, len(updates), AHEAD):
            window = updates[start : start + AHEAD]
            tasks = [task for update in window if (task := self._begin(update))]
            self._end_all(tasks, done)
            dealt += len(tasks)
        if updates and not dealt:
            # Nothing of it can be confirmed, so it would come again at once.
            raise HeldError(Trouble.STUCK, "updates without numbers")

    def _begin(self, update: object) -> Task | None:
        try:
            number = update_id(update)
        except MalformedError:
            # Telegram drops it with the next one that has a number.
            log.warning("an update has no number and is passed by")
            return None
        try:
            meaning = read(update, self._desk.bot.username)
        except MalformedError as fault:
            log.warning(
                "an update cannot be read and is passed by",
                extra={"update_id": number, "fault": str(fault)},
            )
            meaning = None
        if isinstance(meaning, Sent):
            return self._begin_sent(number, meaning)
        return Task(number, meaning, partial(self._act, meaning), _nothing)

    def _begin_sent(self, number: int, sent: Sent) -> Task:
        try:
            end, drop = self._recordings.begin(sent)
        except Exception:
            # Told apart in its turn, when the same happens again.
            end, drop = partial(self._recordings.take, sent), _nothing
        return Task(number, sent, end, drop)

    def _end_all(self, tasks: Sequence[Task], done: Callable[[int], None]) -> None:
        try:
            for task in tasks:
                self._end(task)
                self._tries.pop(task.number, None)
                done(task.number)
        finally:
            for task in tasks:
                task.drop()

    def _end(self, task: Task) -> None:
        try:
            task.end()
        except StoppedError:
            raise
        except Exception as error:
            self._judge(task, error)

    def _judge(self, task: Task, error: Exception) -> None:
        """Hold the update for another try, or give it up when its tries are spent."""
        tries = self._tries[task.number] = self._tries.get(task.number, 0) + 1
        if isinstance(error, AppError) and not error.permanent:
            # The disk is full, say: there is no better time than when there is room again.
            raise HeldError(Trouble.STUCK, error.code) from error
        is_telegrams = isinstance(error, TelegramError)
        if tries < (FETCH_TRIES if is_telegrams else _TRIES):
            reason = str(error) if is_telegrams else type(error).__name__
            raise HeldError(Trouble.STUCK, reason) from error
        log.error("an update is given up", exc_info=error, extra={"update_id": task.number})
        if isinstance(task.meaning, Sent):
            told = words.NOT_HANDED_OVER if is_telegrams else KINDS["internal"].sentence
            self._recordings.give_up(task.meaning, told)

    def _act(self, meaning: Meaning | None) -> None:
        if isinstance(meaning, Command):
            self._commands.obey(meaning)
        elif isinstance(meaning, Press):
            self._commands.press(meaning)
        elif isinstance(meaning, Chatter):
            self._commands.hint(meaning)
        elif isinstance(meaning, Membership):
            self._commands.greet(meaning)
        elif isinstance(meaning, Moved):
            self._desk.chats.moved(meaning.old, meaning.new, self._desk.clock())


def _nothing() -> None:
    pass
