"""Texts on their way to chats: whole, in order, each once; and what Telegram has against it."""

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.queue.replies import Reason, ReplyState
from tests.processes import wait_until
from tests.telegram.double import Telegram
from tests.telegram.post import Post, post

SENTENCE = "Сегодня мы говорим о погоде 🌦, и о том, что будет завтра. "
REJECTED = (ReplyState.UNDELIVERED, Reason.REJECTED)
SENT = (ReplyState.SENT, None)
DOUBTFUL = (ReplyState.DOUBTFUL, None)


@pytest.fixture
def office(tmp_path: Path, telegram: Telegram) -> Iterator[Post]:
    with post(tmp_path, telegram) as found:
        yield found


def test_the_text_comes_as_a_reply_to_its_recording_with_its_forms(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    message = alpha.sends_voice(b"OggS")
    job = office.takes(message)
    office.ends("Good morning.")
    office.sends()
    (answer,) = alpha.chat.answers_to(message)
    assert answer.text == "Good morning."
    assert answer.buttons == ["srt", "txt"]
    assert office.fate(job) == SENT


def test_ct02_a_long_text_comes_in_parts_and_nothing_is_lost(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    message = alpha.sends_voice(b"OggS")
    office.takes(message)
    text = (SENTENCE * 500).strip()
    office.ends(text)
    office.sends()
    parts = [call.arguments["text"] for call in telegram.journal.done("sendMessage")]
    assert "".join(parts) == text
    assert len(alpha.chat.answers_to(message)) == len(parts) == 8
    assert [bool(answer.buttons) for answer in alpha.chat.from_bot] == [False] * 7 + [True]


def test_ct02_a_very_long_text_comes_as_a_file_with_its_first_lines(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    message = alpha.sends_voice(b"OggS")
    office.takes(message)
    text = (SENTENCE * 1000).strip()
    office.ends(text)
    office.sends()
    (answer,) = alpha.chat.answers_to(message)
    assert answer.file_name == "talk.txt"
    assert answer.data == (text + "\n").encode()
    assert text.startswith(answer.text.removesuffix(" …"))
    assert answer.buttons == ["srt", "txt"]


@pytest.mark.parametrize(
    "text",
    ["a_b*c[d](e)~`>#+-=|{}.!", "<b>bold</b> & <script>", "/start @somebody https://example.org"],
)
def test_ct04_marks_of_a_text_arrive_as_they_are(
    office: Post, telegram: Telegram, text: str
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"))
    office.ends(text)
    office.sends()
    assert alpha.chat.texts == [text]
    assert not any("parse_mode" in call.arguments for call in telegram.journal.calls())


def test_silence_is_said_in_words(office: Post, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha", language="ru")
    alpha.starts()
    office.takes(alpha.sends_voice(b"OggS"), language="ru")
    office.ends("")
    office.sends()
    assert alpha.chat.texts == ["Речи в этой записи не нашлось."]


def test_a_failure_tells_what_to_do_and_offers_what_may_help(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    first, second = alpha.sends_voice(b"OggS"), alpha.sends_voice(b"OggS")
    office.takes(first)
    cancelled = office.takes(second)
    office.fails("no_audio_track")
    office.house.queue.cancel(cancelled.id, cancelled.created)
    office.sends()
    (verdict,), (end,) = alpha.chat.answers_to(first), alpha.chat.answers_to(second)
    assert "has no sound" in verdict.text
    # The verdict was on the recording: again, it would end alike.
    assert not verdict.buttons
    assert end.text.startswith("Cancelled.")
    assert end.buttons == ["Try again"]


def test_ct06_who_blocked_the_bot_is_not_tried_again_and_others_get_theirs(
    office: Post, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    gamma, beta = telegram.person("Gamma"), telegram.person("Beta")
    jobs = []
    for person in (gamma, beta, gamma, beta):
        if not person.chat.shown:
            person.starts()
        jobs.append(office.takes(person.sends_voice(b"OggS")))
    gamma.blocks_bot()
    for _ in jobs:
        office.ends("Good morning.")
    office.sends()
    assert [office.fate(job) for job in jobs] == [REJECTED, SENT, REJECTED, SENT]
    assert len(beta.chat.texts) == 2
    assert len(telegram.journal.calls("sendMessage")) == 4
    assert all(record.levelno == logging.WARNING for record in caplog.records)
    assert office.house.queue.transcript(jobs[0].id)
    # The owner, not /start, has it sent again.
    gamma.unblocks_bot()
    gamma.starts()
    office.sends()
    assert not gamma.chat.from_bot
    office.replies.send_again(jobs[0].id, jobs[0].created)
    office.sends()
    assert gamma.chat.texts == ["Good morning."]


def test_a_group_that_moved_gets_its_text_in_its_new_place(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    group = telegram.group("Office", alpha, is_super=False)
    group.adds_bot(alpha)
    job = office.takes(alpha.sends_voice(b"OggS", to=group))
    moved = group.becomes_supergroup(alpha)
    office.ends("Good morning.")
    office.sends()
    assert office.fate(job) == SENT
    assert moved.texts == ["Good morning."]
    # Messages are numbered anew there: the old number would be somebody else's.
    (call,) = telegram.journal.done("sendMessage")
    assert "reply_parameters" not in call.arguments


def test_a_recording_that_was_deleted_gets_its_text_all_the_same(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    message = alpha.sends_voice(b"OggS")
    office.takes(message)
    alpha.deletes(message)
    office.ends("Good morning.")
    office.sends()
    assert alpha.chat.texts == ["Good morning."]


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_topic_that_is_gone_does_not_keep_the_text(
    office: Post, telegram: Telegram, is_deleted: bool
) -> None:
    alpha = telegram.person("Alpha")
    group = telegram.group("Office", alpha, is_forum=True)
    group.adds_bot(alpha, is_admin=True)
    topic = group.opens_topic("Talks", alpha)
    job = office.takes(alpha.sends_voice(b"OggS", to=group, topic=topic))
    if is_deleted:
        group.deletes_topic(topic)
    office.ends("Good morning.")
    office.sends()
    assert office.fate(job) == SENT
    assert group.texts == ["Good morning."]
    assert group.from_bot[0].is_in_topic is not is_deleted


def test_ct05_what_telegram_asks_to_wait_for_arrives_once_and_in_the_least_time(
    office: Post, telegram: Telegram
) -> None:
    people = [telegram.person(f"Person {number}") for number in range(20)]
    jobs = []
    for person in people:
        person.starts()
        jobs.append(office.takes(person.sends_voice(b"OggS")))
    for _ in jobs:
        office.ends("Good morning.")
    telegram.faults.flood("sendMessage", times=3, retry_after=1)
    begun = time.monotonic()
    office.sends()
    assert time.monotonic() - begun < 3 + 10
    assert [person.chat.texts for person in people] == [["Good morning."]] * 20
    assert not telegram.journal.impatient()
    assert {office.fate(job) for job in jobs} == {SENT}


def test_q25_what_surely_did_not_arrive_is_sent_again(office: Post, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    job = office.takes(alpha.sends_voice(b"OggS"))
    office.ends("Good morning.")
    telegram.faults.page("sendMessage", times=2)
    office.sends()
    assert alpha.chat.texts == ["Good morning."]
    assert office.fate(job) == SENT


@pytest.mark.parametrize("after", [True, False])
def test_q25_what_may_have_arrived_is_not_sent_again(
    office: Post, telegram: Telegram, after: bool, caplog: pytest.LogCaptureFixture
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    job = office.takes(alpha.sends_voice(b"OggS"))
    office.ends("Good morning.")
    telegram.faults.silence("sendMessage", after=after)
    office.sends()
    assert len(telegram.journal.calls("sendMessage")) == 1
    assert office.fate(job) == DOUBTFUL
    assert alpha.chat.texts == (["Good morning."] if after else [])
    assert "Good morning" not in caplog.text


def test_p24_unreachable_is_told_after_bounded_tries(tmp_path: Path, telegram: Telegram) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    with post(tmp_path, telegram, DELIVERY_WAIT="2") as office:
        job = office.takes(alpha.sends_voice(b"OggS"))
        office.ends("Good morning.")
        telegram.goes_down()
        begun = time.monotonic()
        office.sends()
        assert time.monotonic() - begun < 15
        assert office.fate(job) == (ReplyState.UNDELIVERED, Reason.UNREACHABLE)
        assert office.house.queue.get(job.id).state == "done"
        telegram.comes_up()


def test_p47_a_bot_that_stops_leaves_what_it_has_not_sent_to_its_successor(
    office: Post, telegram: Telegram
) -> None:
    alpha = telegram.person("Alpha")
    alpha.starts()
    job = office.takes(alpha.sends_voice(b"OggS"))
    office.ends("Good morning.")
    telegram.faults.flood("sendMessage", retry_after=100)
    thread = threading.Thread(target=office.delivery.turn)
    thread.start()
    wait_until(lambda: bool(telegram.journal.calls("sendMessage")), 10, "it was asked to wait")
    office.stopping.set()
    thread.join(10)
    assert office.fate(job) == (ReplyState.OWED, None)
    assert not alpha.chat.from_bot
