"""What is kept of Telegram: bots, chats, messages of jobs, upload links."""

import re
import sqlite3
from datetime import datetime, timedelta

import pytest

from app.chats import (
    Access,
    Bots,
    ChatKind,
    Chats,
    JobMessage,
    JobMessages,
    LinkFor,
    Links,
    Mode,
    Trouble,
)
from app.chats.statements import SQL
from app.db import Database
from app.errors import AppError
from app.job import Source, State
from app.queue.port import NewJob
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import stored_file

BOT = 77
LATER = timedelta(seconds=3600)


def job_of(database: Database, now: datetime, chat: int, message: int = 1) -> str:
    new = NewJob(
        file=stored_file(),
        source=Source.TELEGRAM,
        display_name="voice",
        tg_chat_id=chat,
        tg_reply_message_id=message,
    )
    return SqliteQueue(database).enqueue(new, now).job.id


@pytest.mark.parametrize("name", SQL)
def test_every_statement_compiles_and_walks_no_whole_table(database: Database, name: str) -> None:
    raw = sqlite3.connect(database.path)
    values = dict.fromkeys(re.findall(r":(\w+)", SQL[name]))
    plan = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", values)]
    raw.close()
    # A service has one bot, or two; the list of chats and of due messages is an index in its order.
    # What a subquery gave has been walked already.
    small = (
        "telegram_bots",
        "telegram_chats_seen",
        "telegram_messages_due",
        "(subquery",
        "json_each",
    )
    walked = [step for step in plan if step.startswith("SCAN ")]
    assert [step for step in walked if not any(name in step for name in small)] == []


def test_a_bot_goes_on_after_the_last_update_that_was_dealt_with(
    database: Database, now: datetime
) -> None:
    bots = Bots(database)
    assert bots.newest() is None
    assert bots.know(BOT, "scribe_bot", False, now).read_up_to == 0
    bots.done(BOT, 900, now + LATER)
    again = bots.know(BOT, "renamed_bot", True, now + 2 * LATER)
    assert (again.read_up_to, again.updated) == (900, now + LATER)
    assert (again.username, again.sees_all) == ("renamed_bot", True)
    assert bots.know(78, "other_bot", False, now).read_up_to == 0


def test_an_answer_is_noted_once_a_minute_and_a_trouble_when_it_begins(
    database: Database, now: datetime
) -> None:
    bots = Bots(database)
    bot = bots.know(BOT, "scribe_bot", False, now)
    assert bots.heard(bot, now + timedelta(seconds=30)).last_answer == now
    assert bots.heard(bot, now + timedelta(seconds=60)).last_answer == now + timedelta(seconds=60)
    bot = bots.in_trouble(bot, Trouble.CONFLICT)
    assert bot.trouble is Trouble.CONFLICT
    healed = bots.heard(bot, now + timedelta(seconds=61))
    assert (healed.trouble, healed.last_answer) == (None, now + timedelta(seconds=61))


def test_what_the_owner_chose_for_a_chat_survives_its_next_message(
    database: Database, now: datetime
) -> None:
    chats = Chats(database)
    chat = chats.seen(-5, ChatKind.GROUP, "Office", Mode.ALL, now)
    assert (chat.access, chat.mode, chat.language) == (Access.UNSET, Mode.ALL, None)
    chats.set_access(-5, Access.ALLOWED)
    chats.set_mode(-5, Mode.ON_REQUEST)
    chats.set_language(-5, "ru")
    again = chats.seen(-5, ChatKind.GROUP, "Office 2", Mode.OFF, now + LATER)
    assert (again.access, again.mode, again.language) == (Access.ALLOWED, Mode.ON_REQUEST, "ru")
    assert (again.title, again.created, again.last_seen) == ("Office 2", now, now + LATER)
    with pytest.raises(AppError, match="nothing here"):
        chats.set_access(-6, Access.ALLOWED)


def test_a_group_that_moves_takes_its_choices_along(database: Database, now: datetime) -> None:
    chats = Chats(database)
    chats.seen(-5, ChatKind.GROUP, "Office", Mode.OFF, now)
    chats.set_access(-5, Access.ALLOWED)
    chats.moved(-5, -1005, now + LATER)
    moved = chats.get(-1005)
    assert (moved.access, moved.mode, moved.title) == (Access.ALLOWED, Mode.OFF, "Office")
    assert chats.address(-5) == chats.address(-1005) == -1005
    assert chats.address(12) == 12
    assert [chat.id for chat in chats.newest(10)] == [-1005]
    chats.moved(-5, -1005, now + LATER)
    assert chats.get(-1005) == moved


def test_a_group_whose_new_number_was_seen_first_is_still_allowed(
    database: Database, now: datetime
) -> None:
    chats = Chats(database)
    chats.seen(-5, ChatKind.GROUP, "Office", Mode.ALL, now)
    chats.set_access(-5, Access.ALLOWED)
    chats.seen(-1005, ChatKind.SUPERGROUP, "Office", Mode.ALL, now)
    chats.moved(-5, -1005, now)
    assert chats.get(-1005).access is Access.ALLOWED


def test_moves_in_a_circle_end(database: Database, now: datetime) -> None:
    chats = Chats(database)
    chats.seen(-5, ChatKind.GROUP, "Office", Mode.ALL, now)
    chats.moved(-5, -6, now)
    chats.moved(-6, -5, now)
    assert chats.address(-5) in (-5, -6)


def test_a_chat_is_told_once_in_a_while_that_it_may_not(database: Database, now: datetime) -> None:
    chats = Chats(database)
    chats.seen(9, ChatKind.PRIVATE, "Somebody", Mode.ALL, now)
    assert chats.may_refuse(9, 600, now)
    assert not chats.may_refuse(9, 600, now + timedelta(seconds=599))
    assert chats.may_refuse(9, 600, now + timedelta(seconds=600))
    # A clock that went back must not silence it for ever.
    assert chats.may_refuse(9, 600, now)


def test_a_message_stands_for_one_job_of_one_bot(database: Database, now: datetime) -> None:
    messages = JobMessages(database)
    job = job_of(database, now, 9)
    kept = JobMessage(job, BOT, 9, 1, None, None, 9, "ru")
    messages.add(kept, now)
    messages.add(kept, now + LATER)
    assert messages.of_job(job) == messages.at(BOT, 9, 1) == kept
    assert messages.at(78, 9, 1) is None
    assert messages.of_job("nothing00000000") is None


def test_a_status_is_due_until_it_is_closed(database: Database, now: datetime) -> None:
    messages = JobMessages(database)
    first, second = (job_of(database, now, 9, number) for number in (1, 2))
    messages.add(JobMessage(first, BOT, 9, 1, None, "album", 9, "en"), now)
    messages.add(JobMessage(second, BOT, 9, 2, None, "album", 9, "en"), now + LATER)
    assert [item.job for item in messages.due(10, 10)] == [first, second]
    assert [item.job for item in messages.album(9, "album")] == [first, second]
    messages.show(first, 500, "in line", now)
    assert [item.job for item in messages.by_status(BOT, 9, 500)] == [first]
    messages.show(first, 500, "done", now, is_closed=True)
    assert [item.job for item in messages.due(10, 10)] == [second]
    messages.reopen(first, now)
    assert len(messages.due(10, 10)) == 2


def test_a_chat_with_many_recordings_hides_no_other_chats(
    database: Database, now: datetime
) -> None:
    messages = JobMessages(database)
    for number in range(5):
        job = job_of(database, now, 9, number)
        messages.add(JobMessage(job, BOT, 9, number, None, None, 9, "en"), now)
    other = job_of(database, now, 10)
    messages.add(JobMessage(other, BOT, 10, 1, None, None, 10, "en"), now + LATER)
    due = messages.due(100, 3)
    assert [(item.chat, item.message) for item in due] == [(9, 0), (9, 1), (9, 2), (10, 1)]


def test_a_chat_knows_what_it_waits_for(database: Database, now: datetime) -> None:
    messages, queue = JobMessages(database), SqliteQueue(database)
    first, second = (job_of(database, now, 9, number) for number in (1, 2))
    other = job_of(database, now, 10)
    assert list(messages.active_jobs(9, 10)) == [second, first]
    assert queue.cancel(second, now).state is State.FAILED
    assert list(messages.active_jobs(9, 10)) == [first]
    assert list(messages.active_jobs(10, 10)) == [other]


def test_a_link_is_good_for_one_recording_and_a_while(database: Database, now: datetime) -> None:
    links = Links(database)
    secret = links.make(LinkFor(BOT, 9, 1, None, 9, "ru"), 60, now)
    link = links.find(secret, now)
    assert link and (link.chat, link.message, link.is_used) == (9, 1, False)
    assert links.find("guess", now) is None
    assert links.find(secret, now + timedelta(seconds=60)) is None
    job = job_of(database, now, 9)
    links.use(link, job)
    links.use(link, job_of(database, now, 9, 2))
    used = links.find(secret, now + LATER)
    assert used and used.job == job


def test_links_keep_no_secret_and_old_ones_go(database: Database, now: datetime) -> None:
    links = Links(database)
    old = links.make(LinkFor(None, None, None, None, None, "en"), 60, now)
    links.make(LinkFor(None, None, None, None, None, "en"), 60, now + LATER)
    with database.read() as connection:
        kept = [tuple(row) for row in connection.execute("SELECT * FROM upload_links")]
    assert len(kept) == 1
    assert old not in str(kept)
