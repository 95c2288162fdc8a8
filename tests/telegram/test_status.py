"""The message that tells how a recording stands: one for each, changed, and gone at the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import utcnow
from app.job import State, Step
from app.telegram import status
from app.telegram.outgoing import Stopped
from tests.queue.hands import converted, held, recognized, started
from tests.telegram.double import Telegram
from tests.telegram.post import Post, post


@pytest.fixture
def office(tmp_path: Path, telegram: Telegram, monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    # Tests change a message sooner than people could read it.
    monkeypatch.setattr(status, "_SHORTEST_PAUSE_SECONDS", -1000.0)
    monkeypatch.setattr(status, "_LONGEST_PAUSE_SECONDS", 0.0)
    with post(tmp_path, telegram) as found:
        yield found


def test_a_recording_is_acknowledged_and_its_message_follows_it_to_the_end(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    message = alpha.sends_voice(b"OggS")
    office.takes(message)
    queue = office.house.queue
    office.shows()
    (told,) = alpha.chat.answers_to(message)
    assert (told.text, told.buttons) == ("Accepted. Next in line.", ["Cancel"])
    claim = held(queue, now=utcnow())
    office.shows()
    assert told.text == "Converting …"
    assert queue.finish(claim, converted(), utcnow())
    assert queue.finish(held(queue, State.CONVERTED, utcnow()), started(), utcnow())
    claim = held(queue, State.TRANSCRIBE, utcnow())
    assert queue.report(claim, 0.437, utcnow())
    office.shows()
    assert told.text == "Recognizing … 40%"
    assert queue.finish(claim, recognized("Good morning."), utcnow())
    office.shows()
    assert not told.is_deleted, "the text comes before its message goes"
    office.sends()
    office.shows()
    assert alpha.chat.texts == ["Good morning."]
    assert told.is_deleted
    assert not office.messages.due(10, 10)


def test_the_reader_s_language_is_that_of_all_of_it(office: Post, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha", language="ru")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"), language="ru")
    office.shows()
    assert alpha.chat.texts == ["Принято. Следующая на очереди."]
    assert alpha.chat.from_bot[0].buttons == ["Отменить"]


def test_why_it_waits_is_said(office: Post, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"))
    second = alpha.sends_voice(b"OggS")
    office.takes(second)
    office.shows()
    (told,) = alpha.chat.answers_to(second)
    assert told.text == "Accepted. Place in line: 2."
    office.workers.clear()
    office.shows()
    assert "worker" in told.text
    office.house.queue.pause_step(Step.CONVERT, utcnow())
    office.shows()
    assert "paused" in told.text


def test_nothing_is_changed_that_says_the_same(office: Post, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"))
    for _ in range(5):
        office.shows()
    assert len(telegram.journal.calls("sendMessage", "editMessageText")) == 1


def test_ct05_changes_come_no_faster_than_people_read(
    office: Post, telegram: Telegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    alpha = telegram.person("Alpha")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"))
    office.board.turn()
    claim = held(office.house.queue, now=utcnow())
    for _ in range(20):
        office.board.turn()
    assert not telegram.journal.calls("editMessageText")
    assert claim.job.is_running


def test_ct13_an_album_has_one_message_that_counts(office: Post, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    files = [alpha.sends_audio(b"ID3") for _ in range(3)]
    for file in files:
        office.takes(file, album="one")
        office.shows()
    (told,) = alpha.chat.from_bot
    assert told.text == "Recordings: 3, ready: 0. Accepted. Next in line."
    office.ends("First.")
    office.shows()
    assert told.text.startswith("Recordings: 3, ready: 1.")
    office.ends("Second.")
    office.ends("Third.")
    office.sends()
    office.shows()
    assert alpha.chat.texts == ["First.", "Second.", "Third."]
    assert [file.id for file in files] == [
        answer.reply_to.id for answer in alpha.chat.from_bot if answer.reply_to
    ]
    assert not office.messages.due(10, 10)


def test_a_text_that_may_not_have_arrived_is_said_in_its_message(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"))
    office.shows()
    office.ends("Good morning.")
    telegram.faults.silence("sendMessage")
    office.sends()
    office.shows()
    assert alpha.chat.texts == [status.UNSURE]
    assert not office.messages.due(10, 10)


def test_what_telegram_does_not_let_be_taken_away_says_how_it_ended(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"))
    office.shows()
    office.ends("Good morning.")
    office.sends()
    telegram.clock.passes(hours=49)
    office.shows()
    assert alpha.chat.texts == ["Done.", "Good morning."]
    assert not alpha.chat.from_bot[0].buttons
    assert not office.messages.due(10, 10)


@pytest.mark.parametrize("verb", ["deletes", "blocks_bot"])
def test_a_message_that_is_gone_is_not_kept_up(office: Post, telegram: Telegram, verb: str) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"))
    office.shows()
    if verb == "deletes":
        alpha.deletes(alpha.chat.from_bot[0])
    else:
        alpha.blocks_bot()
    held(office.house.queue, now=utcnow())
    for _ in range(3):
        office.shows()
    assert len(telegram.journal.calls("editMessageText")) == 1
    assert not office.messages.due(10, 10)


def test_what_ended_before_it_was_told_needs_no_message(office: Post, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"))
    office.ends("Good morning.")
    office.shows()
    office.sends()
    office.shows()
    assert alpha.chat.texts == ["Good morning."]
    assert not office.messages.due(10, 10)


def test_a_thousand_recordings_do_not_get_a_thousand_messages(
    office: Post, telegram: Telegram
) -> None:
    alpha, beta = telegram.person("Alpha"), telegram.person("Beta")
    alpha.starts()
    beta.starts()
    for _ in range(30):
        office.takes(alpha.sends_voice(b"OggS"))
    office.takes(beta.sends_voice(b"OggS"))
    office.shows()
    assert len(alpha.chat.texts) == status._OPEN_PER_CHAT
    assert len(beta.chat.texts) == 1


def test_ct10_a_message_that_a_killed_bot_may_have_sent_is_not_sent_again(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    job = office.takes(alpha.sends_voice(b"OggS"))
    # As a bot leaves it that is killed in between.
    office.messages.show(job.id, None, status._MARK, utcnow())
    office.shows()
    assert not telegram.journal.calls("sendMessage")
    office.ends("Good morning.")
    office.sends()
    office.shows()
    assert alpha.chat.texts == ["Good morning."]
    assert not office.messages.due(10, 10)


def test_a_bot_that_stops_leaves_the_message_to_its_successor(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"))
    office.stopping.set()
    with pytest.raises(Stopped):
        office.shows()
    office.stopping.clear()
    office.shows()
    assert len(alpha.chat.texts) == 1


def test_a_job_set_going_again_is_told_of_in_a_new_message(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    job = office.takes(alpha.sends_voice(b"OggS"))
    office.shows()
    office.house.queue.cancel(job.id, utcnow())
    office.sends()
    office.shows()
    office.house.queue.revive(job.id, utcnow())
    office.messages.reopen(job.id, utcnow())
    office.shows()
    assert [text.split(".")[0] for text in alpha.chat.texts] == ["Cancelled", "Accepted"]
