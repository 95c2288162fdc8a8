"""Emptying the bin: files first, then rows, and again after a crash in between (S31, CQ20).

And settling replies that no process will send (P24).
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import AppError
from app.job import Job, Source, State, StoredFile
from app.liveness import Presence
from app.migrate import open_database
from app.queue.port import Converted
from app.queue.replies import Reason, Replies, ReplyState
from app.queue.sqlite import SqliteQueue
from app.storage.local import LocalStorage
from tests.queue.hands import RESULTS, START, at, hand_in, held
from worker.housekeeping import empty_bin, settle_replies

BIN = 7 * 86400.0
OVER = at(BIN + 61)


class Room:
    """A queue and a storage in one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.database = open_database(data_dir, START)
        self.presence = Presence(data_dir, "worker")
        self.queue = SqliteQueue(self.database)
        self.storage = LocalStorage(data_dir, self.presence.scratch)

    def keep(self, data: bytes) -> StoredFile:
        draft = self.storage.draft(10**6)
        draft.write(data)
        return self.storage.keep(draft)

    def converted(self) -> Job:
        """A job with two files: what was handed in, and the converted copy."""
        job = hand_in(self.queue, file=self.keep(b"source"))
        result = Converted(self.keep(b"copy"), 1.0, source_is_playable=False)
        assert self.queue.finish(held(self.queue), result, START)
        return self.queue.get(job.id)

    def binned(self) -> Job:
        return self.queue.delete(self.converted().id, START)

    def files(self) -> list[Path]:
        return [path for path in (self.data_dir / "storage").rglob("*") if path.is_file()]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.presence.close()
    room.database.close()


def empty(room: Room) -> int:
    return empty_bin(room.queue, room.storage, BIN, OVER)


def test_s31_a_job_whose_time_is_over_goes_with_its_files_and_no_other(room: Room) -> None:
    kept = room.converted()
    gone = room.binned()
    young = room.queue.delete(room.converted().id, at(100))
    assert empty(room) == 1
    assert room.queue.find_binned(gone.id) is None
    assert room.queue.find_binned(young.id) and room.queue.find(kept.id)
    assert len(room.files()) == 4
    for job in (kept, young):
        assert all(room.storage.exists(file) for file in room.queue.files_of(job.id))
    assert empty(room) == 0


def test_s31_more_jobs_than_fit_in_one_batch_go_batch_by_batch(room: Room) -> None:
    for _ in range(103):
        job = hand_in(room.queue)
        room.queue.delete(job.id, START)
    assert [empty(room) for _ in range(3)] == [100, 3, 0]


class Crash(BaseException):
    """The process ends here."""


def test_s31_a_crash_between_files_and_rows_is_made_good_by_the_next_run(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = room.binned()

    def crash(*_: object) -> bool:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(room.queue, "erase", crash)
        with pytest.raises(Crash):
            empty(room)
    assert room.files() == []
    assert room.queue.find_binned(job.id)
    assert empty(room) == 1
    assert room.queue.find_binned(job.id) is None


def test_s31_rows_stay_while_a_file_cannot_be_removed(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = room.binned()
    with monkeypatch.context() as patch:
        patch.setattr(room.storage, "delete", lambda file: None)
        assert empty(room) == 0
    assert room.queue.find_binned(job.id)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert empty(room) == 1
    assert room.files() == []


def test_s31_jobs_whose_files_stay_keep_no_other_in_the_bin(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = {file.id for _ in range(103) for file in room.queue.files_of(_deleted(room).id)}
    gone = room.binned()
    delete = room.storage.delete
    monkeypatch.setattr(room.storage, "exists", lambda file: file.id in stuck)
    monkeypatch.setattr(room.storage, "delete", lambda file: file.id in stuck or delete(file))
    assert empty(room) == 1
    assert room.queue.find_binned(gone.id) is None
    assert empty(room) == 0


def _deleted(room: Room) -> Job:
    return room.queue.delete(hand_in(room.queue).id, START)


def test_s31_one_line_tells_the_number_and_no_name(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    files = [file for _ in range(2) for file in room.queue.files_of(room.binned().id)]
    assert empty(room) == 2
    (record,) = caplog.records
    assert record.__dict__["jobs"] == 2
    for file in files:
        assert file.file not in caplog.text and file.id not in caplog.text
    caplog.clear()
    assert empty(room) == 0
    assert not caplog.records


def test_s31_a_bin_of_no_days_is_emptied_at_the_next_clearing(room: Room) -> None:
    job = room.binned()
    with pytest.raises(AppError, match="nothing here"):
        room.queue.undelete(job.id, 0, at(1))
    assert empty_bin(room.queue, room.storage, 0, at(61)) == 1
    assert room.files() == []


def test_cq20_a_late_convert_of_an_erased_job_writes_nothing(room: Room) -> None:
    job = hand_in(room.queue, file=room.keep(b"source"))
    taken = held(room.queue)
    room.queue.delete(job.id, START)
    assert empty(room) == 1
    late = Converted(room.keep(b"late copy"), 1.0, source_is_playable=False)
    assert not room.queue.finish(taken, late, OVER)
    with pytest.raises(AppError):
        room.queue.file(late.file.id)
    assert not any(room.queue.counts().values())


WAIT = 60.0


def ended(room: Room) -> Job:
    """A job of a chat that ended, and owes its text."""
    job = hand_in(room.queue, source=Source.TELEGRAM, tg_chat_id=7, tg_reply_message_id=1)
    for state in (State.CREATED, State.CONVERTED, State.TRANSCRIBE):
        assert room.queue.finish(held(room.queue, state), RESULTS[state](), START)
    return job


def test_p24_intake_down_is_judged_by_the_worker_when_no_bot_runs(room: Room) -> None:
    job, replies = ended(room), Replies(room.database, room.presence.name)
    settle_replies(replies, room.data_dir, WAIT, at(WAIT - 1))
    assert replies.of_job(job.id)[0].state is ReplyState.OWED
    settle_replies(replies, room.data_dir, WAIT, at(WAIT))
    assert replies.of_job(job.id)[0].reason is Reason.INTAKE_DOWN
    assert room.queue.get(job.id).state is State.DONE


def test_p24_the_worker_leaves_replies_to_a_bot_that_runs(room: Room) -> None:
    job, replies = ended(room), Replies(room.database, room.presence.name)
    bot = Presence(room.data_dir, "bot")
    settle_replies(replies, room.data_dir, WAIT, at(10 * WAIT))
    assert replies.of_job(job.id)[0].state is ReplyState.OWED
    taken = Replies(room.database, bot.name).take(START)
    settle_replies(replies, room.data_dir, WAIT, at(10 * WAIT))
    assert taken and replies.of_job(job.id)[0].state is ReplyState.SENDING
    bot.close()
    settle_replies(replies, room.data_dir, WAIT, at(10 * WAIT))
    assert replies.of_job(job.id)[0].state is ReplyState.DOUBTFUL
