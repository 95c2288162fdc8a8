"""What the bot says in its own name: in order, and never in the way of what comes in."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.telegram import voice as module
from app.telegram.voice import Voice
from tests.telegram.double import Telegram
from tests.telegram.post import Post, post


@pytest.fixture
def office(tmp_path: Path, telegram: Telegram) -> Iterator[Post]:
    with post(tmp_path, telegram) as found:
        yield found


@pytest.fixture
def voice(office: Post) -> Iterator[Voice]:
    found = Voice(office.api, office.outgoing, office.stopping)
    thread = threading.Thread(target=found.run)
    thread.start()
    yield found
    office.stopping.set()
    thread.join(20)
    assert not thread.is_alive()


def test_what_is_said_has_arrived_when_the_call_ends(voice: Voice, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    for number in range(3):
        voice.say(alpha.chat.id, f"word {number}")
        assert alpha.chat.texts[-1] == f"word {number}"
    voice.send_file(alpha.chat.id, "talk.srt", b"1\n")
    assert alpha.chat.from_bot[-1].file_name == "talk.srt"


def test_ct05_a_long_rest_does_not_keep_the_next_recording_from_being_taken(
    voice: Voice, telegram: Telegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.2)
    alpha = telegram.person("Alpha")
    alpha.starts()
    telegram.faults.flood("sendMessage", retry_after=2)
    begun = time.monotonic()
    voice.say(alpha.chat.id, "a word")
    assert time.monotonic() - begun < 1.5
    telegram.waits_for(lambda: alpha.chat.texts == ["a word"], "it is said after the rest")


@pytest.mark.parametrize("trouble", ["blocked", "silent", "garbage"])
def test_ct06_what_cannot_be_said_stops_nothing(
    voice: Voice, telegram: Telegram, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    alpha, beta = telegram.person("Alpha"), telegram.person("Beta")
    alpha.starts()
    beta.starts()
    if trouble == "blocked":
        alpha.blocks_bot()
    elif trouble == "silent":
        telegram.faults.silence("sendMessage")
    else:
        telegram.faults.garbage("sendMessage")
    voice.say(alpha.chat.id, "a word")
    voice.say(beta.chat.id, "another word")
    telegram.waits_for(lambda: beta.chat.texts == ["another word"], "the next is said")
    assert "a word" not in caplog.text


def test_a_button_is_answered(voice: Voice, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    voice.say(alpha.chat.id, "choose", buttons=[[("English", "lang:en")]])
    press = alpha.presses(alpha.chat.from_bot[-1], "English")
    voice.answer(press.id, "Done." * 100)
    (call,) = telegram.journal.done("answerCallbackQuery")
    assert len(call.arguments["text"]) == 200
