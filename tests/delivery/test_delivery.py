"""Replies on the real store, sent over real HTTP, with senders killed at the worst moments."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app import metrics
from app.clock import utcnow
from app.db import Database
from app.delivery import Delivery, MayHaveArrived, PutOff, Undeliverable, give_up
from app.errors import AppError
from app.job import Job, Source, State
from app.liveness import Presence, is_gone
from app.migrate import open_database
from app.queue.replies import Owed, Reason, Replies, ReplyState
from app.queue.sqlite import SqliteQueue
from tests.crew import Crew
from tests.delivery.letterbox import HttpMessenger, Letterbox, letterbox
from tests.queue.hands import RESULTS, START, at, claim, hand_in, held

PARTS = 3


@pytest.fixture
def box() -> Iterator[Letterbox]:
    with letterbox() as found:
        yield found


@pytest.fixture
def database(data_dir: Path) -> Iterator[Database]:
    database = open_database(data_dir, START)
    yield database
    database.close()


@pytest.fixture
def queue(database: Database) -> SqliteQueue:
    return SqliteQueue(database)


@pytest.fixture
def replies(database: Database) -> Replies:
    return Replies(database, "bot-one")


def done(queue: SqliteQueue, **fields: object) -> Job:
    """A job from Telegram that ended with its text."""
    values = {"source": Source.TELEGRAM, "tg_chat_id": 7, "tg_reply_message_id": 1} | fields
    job = hand_in(queue, **values)
    for state in (State.CREATED, State.CONVERTED, State.TRANSCRIBE):
        assert queue.finish(held(queue, state), RESULTS[state](), START)
    return queue.get(job.id)


def sender(replies: Replies, box: Letterbox, part_count: int = 1) -> Delivery:
    return Delivery(replies, HttpMessenger(box.port, part_count), lambda: START)


def states(replies: Replies, job: Job) -> list[ReplyState]:
    return [reply.state for reply in replies.of_job(job.id)]


def drain(data_dir: Path, port: int, dies_after: int | None, before: bool) -> int:
    """Send all that is owed as a process would; dies by SIGKILL at the part of that number.

    before: once the part has arrived, before that is recorded; else as the next part is begun.
    """

    def die(number: int) -> None:
        if number == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)

    class Mortal(HttpMessenger):
        def send(self, owed: Owed, number: int, part: str) -> None:
            if not before and dies_after is not None and number == dies_after + 1:
                os.kill(os.getpid(), signal.SIGKILL)
            super().send(owed, number, part)

    presence = Presence(data_dir, "bot")
    database = open_database(data_dir, utcnow())
    replies = Replies(database, presence.name)
    give_up(replies, is_gone=lambda name: is_gone(data_dir, name), wait_seconds=60, now=utcnow())
    messenger = Mortal(port, PARTS, die if before else lambda _: None)
    delivery, sent = Delivery(replies, messenger, utcnow), 0
    while delivery.turn():
        sent += 1
    database.close()
    presence.close()
    return sent


def test_p47_each_reply_is_sent_once_in_the_order_of_the_ends(
    queue: SqliteQueue, replies: Replies, box: Letterbox
) -> None:
    jobs = [done(queue) for _ in range(3)]
    delivery = sender(replies, box, PARTS)
    while delivery.turn():
        pass
    expected = [f"/{job.id}/{number}" for job in jobs for number in range(PARTS)]
    assert [path for path, _ in box.letters] == expected
    assert all(states(replies, job) == [ReplyState.SENT] for job in jobs)
    assert not delivery.turn()


@pytest.mark.parametrize("before", [True, False])
def test_hazard_19_a_sender_killed_in_mid_reply_neither_swallows_nor_doubles_it(
    queue: SqliteQueue,
    replies: Replies,
    box: Letterbox,
    data_dir: Path,
    before: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = (_done_now(queue) for _ in range(2))
    with Crew(2) as crew:
        crew.start(0, drain, data_dir, box.port, 1, before)
        with pytest.raises(EOFError):
            crew.answer(0)
        assert box.parts_of(first.id) == ["0", "1"]
        assert states(replies, first) == [ReplyState.SENDING]
        # Its successor doubts what the dead one was sending, and sends the rest.
        crew.start(1, drain, data_dir, box.port, None, False)
        assert crew.answer(1) == 1
    assert states(replies, first) == [ReplyState.DOUBTFUL]
    assert replies.of_job(first.id)[0].parts_sent == (1 if before else 2)
    assert box.parts_of(first.id) == ["0", "1"], "what may have arrived is not sent again"
    assert states(replies, second) == [ReplyState.SENT]
    assert box.parts_of(second.id) == ["0", "1", "2"]


def test_p47_q25_a_reply_without_an_answer_is_doubtful_and_counted(
    queue: SqliteQueue, replies: Replies, caplog: pytest.LogCaptureFixture
) -> None:
    class Silent(HttpMessenger):
        def send(self, owed: Owed, number: int, part: str) -> None:
            raise MayHaveArrived

    job = done(queue)
    counter = metrics.undelivered_replies.labels("unreachable")
    before = counter._value.get()
    assert Delivery(replies, Silent(9, 1), lambda: START).turn()
    assert states(replies, job) == [ReplyState.DOUBTFUL]
    assert counter._value.get() == before + 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def _done_now(queue: SqliteQueue) -> Job:
    """As done(), at the real moment: processes of the tests read the real clock."""
    now = utcnow()
    job = hand_in(queue, now, source=Source.TELEGRAM, tg_chat_id=7)
    for state in (State.CREATED, State.CONVERTED, State.TRANSCRIBE):
        assert queue.finish(held(queue, state, now), RESULTS[state](), now)
    return queue.get(job.id)


def test_hazard_19_a_crash_between_the_end_and_the_message_swallows_nothing(
    queue: SqliteQueue, data_dir: Path, box: Letterbox
) -> None:
    # The end is committed and its process is gone: the row is all that is left, and enough.
    job = _done_now(queue)
    with Crew(1) as crew:
        assert crew.all(drain, (data_dir, box.port, None, False)) == [1]
    assert box.parts_of(job.id) == ["0", "1", "2"]


def test_p47_a_living_sender_is_not_doubted(
    queue: SqliteQueue, replies: Replies, database: Database
) -> None:
    job = done(queue)
    assert replies.take(START)
    give_up(Replies(database, "bot-two"), is_gone=lambda _: False, wait_seconds=60, now=at(3600))
    assert states(replies, job) == [ReplyState.SENDING]
    assert replies.take(START) is None, "nobody else takes it"


def test_p47_a_stopped_sender_leaves_the_rest_to_its_successor(
    queue: SqliteQueue, replies: Replies, database: Database, box: Letterbox
) -> None:
    job = done(queue)

    class Stopping(HttpMessenger):
        def send(self, owed: Owed, number: int, part: str) -> None:
            if number == 1:
                raise PutOff
            super().send(owed, number, part)

    Delivery(replies, Stopping(box.port, PARTS), lambda: START).turn()
    assert states(replies, job) == [ReplyState.OWED]
    sender(Replies(database, "bot-two"), box, PARTS).turn()
    assert box.parts_of(job.id) == ["0", "1", "2"]
    assert states(replies, job) == [ReplyState.SENT]


def test_p47_an_unforeseen_fault_makes_the_reply_doubtful(
    queue: SqliteQueue, replies: Replies, box: Letterbox, caplog: pytest.LogCaptureFixture
) -> None:
    job = done(queue)

    def fault(_: int) -> None:
        raise ConnectionResetError

    delivery = Delivery(replies, HttpMessenger(box.port, 1, fault), lambda: START)
    assert delivery.turn()
    assert states(replies, job) == [ReplyState.DOUBTFUL]
    assert not delivery.turn()


def test_p22_a_refused_reply_changes_nothing_about_its_job(
    queue: SqliteQueue, replies: Replies, box: Letterbox
) -> None:
    job = done(queue)
    box.status = 403
    sender(replies, box).turn()
    assert queue.get(job.id) == job
    assert states(replies, job) == [ReplyState.UNDELIVERED]
    assert isinstance(claim(queue, State.TRANSCRIBE), object)
    assert [event.outcome for event in queue.events(job.id)].count("success") == 3


def test_p23_p24_an_undelivered_reply_is_counted_and_logged_without_a_word_of_it(
    queue: SqliteQueue, replies: Replies, box: Letterbox, caplog: pytest.LogCaptureFixture
) -> None:
    job, nobody = done(queue), done(queue, tg_chat_id=None)
    late = done(queue)
    before = {reason: _undelivered(reason) for reason in Reason}
    box.status = 403
    with caplog.at_level(logging.INFO, "app.delivery"):
        delivery = sender(replies, box)
        delivery.turn()
        delivery.turn()
        give_up(replies, is_gone=lambda _: True, wait_seconds=60, now=at(61))
    found = {record.reason: (record.job_id, record.levelname) for record in caplog.records}  # type: ignore[attr-defined]
    assert found == {
        "rejected": (job.id, "WARNING"),
        "no_addressee": (nobody.id, "ERROR"),
        "intake_down": (late.id, "WARNING"),
    }
    assert "Good morning" not in caplog.text
    grown = {reason for reason in Reason if _undelivered(reason) == before[reason] + 1}
    assert grown == {Reason.REJECTED, Reason.NO_ADDRESSEE, Reason.INTAKE_DOWN}


def _undelivered(reason: Reason) -> float:
    name = "transcriber_undelivered_reply_count_total"
    return metrics.registry.get_sample_value(name, {"reason": reason.value}) or 0.0


def test_p47_a_reply_waits_for_its_sender_no_longer_than_it_should(
    queue: SqliteQueue, replies: Replies
) -> None:
    job = done(queue)
    assert not replies.expire(60, at(59.999))
    assert [reply.job for reply in replies.expire(60, at(60))] == [job.id]
    assert replies.of_job(job.id)[0].reason is Reason.INTAKE_DOWN
    assert replies.take(at(61)) is None


def test_p47_only_the_owner_sends_an_undelivered_reply_again(
    queue: SqliteQueue, replies: Replies, box: Letterbox
) -> None:
    job = done(queue)
    with pytest.raises(AppError) as refused:
        replies.send_again(job.id, START)
    assert refused.value.code == "wrong_state"
    replies.expire(60, at(60))
    replies.send_again(job.id, at(3600))
    sender(replies, box).turn()
    assert box.parts_of(job.id) == ["0"]
    assert states(replies, job) == [ReplyState.UNDELIVERED, ReplyState.SENT]
    with pytest.raises(AppError) as refused:
        replies.send_again(job.id, at(3601))
    assert refused.value.code == "wrong_state"
    with pytest.raises(AppError) as refused:
        replies.send_again(hand_in(queue).id, at(3601))
    assert refused.value.code == "not_found"


def test_cq20_the_text_of_a_deleted_job_is_not_sent_but_a_cancelled_sender_is_told(
    queue: SqliteQueue, replies: Replies, box: Letterbox
) -> None:
    finished, running = done(queue), hand_in(queue, source=Source.TELEGRAM, tg_chat_id=8)
    held(queue)
    queue.delete(finished.id, START)
    queue.delete(running.id, START)
    delivery = sender(replies, box)
    while delivery.turn():
        pass
    assert box.letters == [(f"/{running.id}/0", "failed 0")]


class Refusing:
    """A store that takes so many words about a reply, and then none until it is mended."""

    def __init__(self, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = taken
        for word in ("part_sent", "sent", "undelivered", "doubtful", "put_back"):
            monkeypatch.setattr(Replies, word, self._wrapped(getattr(Replies, word)))

    def _wrapped(self, write: Callable[..., bool]) -> Callable[..., bool]:
        def refuse(*args: object) -> bool:
            self.left -= 1
            if self.left < 0:
                raise AppError("disk_full", "database")
            return write(*args)

        return refuse


@pytest.mark.parametrize("taken", range(PARTS + 1))
def test_p47_what_the_store_refused_about_a_sent_reply_is_written_when_it_can(
    queue: SqliteQueue,
    replies: Replies,
    box: Letterbox,
    monkeypatch: pytest.MonkeyPatch,
    taken: int,
) -> None:
    """Else it would be "being sent" for as long as its sender lives, and doubtful after that."""
    first, second = done(queue), done(queue)
    store, delivery = Refusing(taken, monkeypatch), sender(replies, box, PARTS)
    for _ in range(2):
        with pytest.raises(AppError):
            delivery.turn()
    assert box.parts_of(first.id) == ["0", "1", "2"], "all parts, each once"
    assert box.parts_of(second.id) == [], "nothing more is sent before it is written"
    store.left = 99
    while delivery.turn():
        pass
    assert states(replies, first) == states(replies, second) == [ReplyState.SENT]
    assert replies.of_job(first.id)[0].parts_sent == PARTS
    assert box.parts_of(first.id) == ["0", "1", "2"]


def test_p47_a_reply_put_off_goes_on_after_the_part_that_could_not_be_noted(
    queue: SqliteQueue, replies: Replies, box: Letterbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, store = done(queue), Refusing(0, monkeypatch)

    class Stopping(HttpMessenger):
        def send(self, owed: Owed, number: int, part: str) -> None:
            if number == 1:
                store.left = 99
                raise PutOff
            super().send(owed, number, part)

    assert Delivery(replies, Stopping(box.port, PARTS), lambda: START).turn()
    assert replies.of_job(job.id)[0].parts_sent == 1
    assert sender(replies, box, PARTS).turn()
    assert box.parts_of(job.id) == ["0", "1", "2"]


@pytest.mark.parametrize("verdict", [Undeliverable(Reason.REJECTED), MayHaveArrived()])
def test_p22_what_the_store_refused_about_a_reply_that_failed_is_written_when_it_can(
    queue: SqliteQueue, replies: Replies, monkeypatch: pytest.MonkeyPatch, verdict: Exception
) -> None:
    job, store = done(queue), Refusing(0, monkeypatch)

    class Failing(HttpMessenger):
        def send(self, owed: Owed, number: int, part: str) -> None:
            raise verdict

    delivery = Delivery(replies, Failing(0, 1), lambda: START)
    with pytest.raises(AppError):
        delivery.turn()
    store.left = 99
    assert not delivery.turn()
    final = ReplyState.DOUBTFUL if isinstance(verdict, MayHaveArrived) else ReplyState.UNDELIVERED
    assert states(replies, job) == [final]
