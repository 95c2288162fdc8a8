"""Drives the double by typed lines: one person, alone with the bot or in a group with it."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tests.telegram.double.chats import Chat
from tests.telegram.double.messages import Message
from tests.telegram.double.telegram import Telegram

HELP = """\
say TEXT                        a text or a command
voice|audio|video|note|document FILE [CAPTION]
press LABEL                     the button of that label
caption TEXT                    change the caption of what was sent last
delete                          delete what was sent last
block | unblock                 the bot
group | private                 where to go on
show                            what stands in the chat
fault NAME METHOD [COUNT]       silence, reset, page, garbage, cut_off, drip or flood
calls                           what the bot asked, and what was refused
quit
"""


class Console:
    """Reads lines, does what they say and writes what a person would see."""

    def __init__(self, telegram: Telegram, write: Callable[[str], object], name: str) -> None:
        self._telegram = telegram
        self._write = write
        self._person = telegram.person(name)
        self._group = telegram.group("Group", self._person)
        self._chat: Chat = self._person.chat
        self._last: Message | None = None

    def run(self, lines: Iterable[str]) -> None:
        """Until the lines end or one says quit."""
        for line in lines:
            try:
                words = shlex.split(line)
                if words[:1] == ["quit"]:
                    return
                self._write(self._do(words[0], words[1:]) + "\n" if words else "")
            except (AssertionError, AttributeError, IndexError, OSError, ValueError) as fault:
                self._write(f"{fault or type(fault).__name__}; try: help\n")

    def _do(self, verb: str, words: Sequence[str]) -> str:
        person, to = self._person, self._chat
        if verb in ("voice", "audio", "video", "note", "document"):
            send = getattr(person, "sends_video_note" if verb == "note" else f"sends_{verb}")
            self._last = send(Path(words[0]), to=to, caption=" ".join(words[1:]))
        elif verb == "say":
            self._last = person.says(" ".join(words), to=to)
        elif verb == "press":
            label = " ".join(words)
            below = [message for message in to.from_bot if label in message.buttons]
            person.presses(below[-1], label)
        elif verb == "caption" and self._last:
            person.edits(self._last, " ".join(words))
        elif verb == "delete" and self._last:
            person.deletes(self._last)
        elif verb in ("block", "unblock"):
            getattr(person, f"{verb}s_bot")()
        elif verb in ("group", "private"):
            self._go(verb)
        elif verb == "fault":
            count = int(words[2]) if len(words) > 2 else 1
            getattr(self._telegram.faults, words[0])(words[1], count)
        elif verb == "show":
            return "\n".join(_line(message) for message in to.shown)
        elif verb == "calls":
            calls = self._telegram.journal.calls()
            return "\n".join(f"{call.method} {call.refusal}" for call in calls)
        else:
            return HELP
        return "done"

    def _go(self, verb: str) -> None:
        self._chat = self._group if verb == "group" else self._person.chat
        if verb == "group" and self._group.bot_status == "left":
            self._group.adds_bot(self._person)


def _line(message: Message) -> str:
    by = "bot" if message.is_bots else getattr(message.sender, "first_name", "")
    answers = f" (to {message.reply_to.id})" if message.reply_to else ""
    buttons = "".join(f" [{label}]" for label in message.buttons)
    return f"{message.id} {by}{answers}: {message.media} {message.text}{buttons}"
