"""The disk is full at each point where something is written: said clearly, nothing lost, undone."""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from app.db import Database
from app.errors import AppError
from app.intake import Intake
from app.job import ACTIVE, Job, Source, State, Step
from app.liveness import Presence
from app.migrate import open_database
from app.queue.port import Buried, Claim, Converted
from app.queue.sqlite import SqliteQueue
from app.settings import Settings
from app.storage.local import LocalStorage
from tests.queue.hands import RESULTS, START, at, claim, held, piece
from tests.reliability import light_worker
from tests.reliability.disks import filled, small_disk
from tests.service.house import service
from worker.loop import Lane, Limits, Loop, Run
from worker.work import Work

BYTES = b"OggS" + bytes(50_000)
CRASH = AppError("convert_crashed")
VERDICT = AppError("no_audio_track")


class Shop:
    """Intake, queue and storage on a small disk; reopened, its log of writes is empty."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.open()

    def open(self) -> None:
        self.database: Database = open_database(self.data_dir, START)
        self.queue = SqliteQueue(self.database)
        self.presence = Presence(self.data_dir, "worker")
        self.storage = LocalStorage(self.data_dir, self.presence.scratch)
        self.intake = Intake(Settings(), self.queue, self.storage)

    def close(self) -> None:
        self.presence.close()
        self.database.close()

    def reopen(self) -> None:
        """Without this a write may find room in blocks that the log has had before."""
        self.close()
        self.open()

    def hand_in(self) -> Job:
        draft = self.intake.draft()
        try:
            draft.write(BYTES)
        except AppError:
            draft.discard()
            raise
        return self.intake.accept(
            draft,
            source=Source.TELEGRAM,
            display_name="talk.ogg",
            language=None,
            sender="telegram:7",
            now=START,
        ).job

    def bring_to(self, job: Job, state: State) -> None:
        for before in ACTIVE[: ACTIVE.index(state)]:
            taken = held(self.queue, before)
            assert taken.job.id == job.id
            assert self.queue.finish(taken, self.result(before), START)

    def result(self, state: State) -> object:
        if state is not State.CREATED:
            return RESULTS[state]()
        copy = self.presence.scratch / "converted.wav"
        copy.write_bytes(BYTES)
        return Converted(self.storage.adopt(copy, ".wav", "audio/wav"), 1.0, True)

    def everything(self) -> str:
        """All that stands in the store, and which files there are."""
        with self.database.read() as connection:
            tables = ("transcribe_jobs", "files", "job_events", "transcripts", "transcript_pieces")
            rows = {
                table: [tuple(row) for row in connection.execute(f"SELECT * FROM {table}")]
                for table in (*tables, "replies", "job_counts")
            }
        names = sorted(str(path) for path in (self.data_dir / "storage").rglob("*"))
        return json.dumps([rows, names], default=str)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        opened = Shop(disk / "data")
        yield opened
        opened.close()


Verb = Callable[[Shop, Claim], object]
HELD_VERBS: dict[str, Verb] = {
    "progress": lambda shop, taken: shop.queue.report(taken, 0.5, START),
    "piece": lambda shop, taken: shop.queue.save_piece(taken, piece(), 0.5, START),
    "intent": lambda shop, taken: shop.queue.intend(taken, "intent-1", START),
    "retry": lambda shop, taken: shop.queue.retry(taken, CRASH, 1, START),
    "verdict": lambda shop, taken: shop.queue.fail(taken, VERDICT, START),
    "snooze": lambda shop, taken: shop.queue.snooze(taken, 5, START),
    "release": lambda shop, taken: shop.queue.release(taken, START),
    "worker lost": lambda shop, taken: shop.queue.release_lost(lambda name: True, START),
    "cancel": lambda shop, taken: shop.queue.cancel(taken.job.id, START),
    "delete": lambda shop, taken: shop.queue.delete(taken.job.id, START),
}


def refused_then_done(shop: Shop, verb: Callable[[], object]) -> None:
    """On the full disk the verb says so and changes nothing; with room again it is done."""
    shop.reopen()
    before = shop.everything()
    with filled(shop.data_dir):
        for _ in range(2):
            with pytest.raises(AppError) as full:
                verb()
            assert full.value.code == "disk_full"
            assert str(shop.data_dir) not in f"{full.value} {full.value.detail}"
        assert shop.everything() == before, "what was acknowledged can be read, and is all there"
    assert verb()
    assert shop.everything() != before
    with shop.database.read() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_q22_hazard_11_a_hand_in_on_a_full_disk(shop: Shop) -> None:
    shop.hand_in()
    refused_then_done(shop, shop.hand_in)
    assert not list(shop.presence.scratch.iterdir())


@pytest.mark.parametrize("state", ACTIVE)
def test_q22_hazard_11_a_claim_on_a_full_disk(shop: Shop, state: State) -> None:
    shop.bring_to(shop.hand_in(), state)
    refused_then_done(shop, lambda: isinstance(claim(shop.queue, state), Claim))


def test_q22_hazard_11_a_burial_on_a_full_disk(shop: Shop) -> None:
    shop.hand_in()
    shop.queue.retry(held(shop.queue), CRASH, 1, START)
    refused_then_done(
        shop, lambda: isinstance(claim(shop.queue, now=at(1), max_attempts=1), Buried)
    )


@pytest.mark.parametrize("state", ACTIVE)
def test_q22_hazard_11_a_result_on_a_full_disk(shop: Shop, state: State) -> None:
    shop.bring_to(shop.hand_in(), state)
    taken, result = held(shop.queue, state), shop.result(state)
    refused_then_done(shop, lambda: shop.queue.finish(taken, result, START))  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", HELD_VERBS)
def test_q22_hazard_11_any_other_word_about_a_claim_on_a_full_disk(shop: Shop, verb: str) -> None:
    shop.bring_to(shop.hand_in(), State.TRANSCRIBE)
    taken = held(shop.queue, State.TRANSCRIBE)
    refused_then_done(shop, lambda: HELD_VERBS[verb](shop, taken))


def test_q22_hazard_11_a_conversion_on_a_full_disk(shop: Shop) -> None:
    """The copy has no room: a failure that is tried again, and nothing of it is left."""
    job = shop.hand_in()
    moments = [START]
    loop = Loop(
        queue=shop.queue,
        storage=shop.storage,
        worker=shop.presence.name,
        scratch=shop.presence.scratch,
        limits=Limits(5, 300),
        now=lambda: moments[-1],
        poll_seconds=1,
    )

    class Convert:
        is_full = True

        def run(self, work: Work) -> Converted:
            with filled(shop.data_dir) if self.is_full else nullcontext():
                copy = work.folder / "converted.wav"
                copy.write_bytes(BYTES)
                return Converted(shop.storage.adopt(copy, ".wav", "audio/wav"), 1.0, True)

    convert = Convert()
    lane = Lane(State.CREATED, Step.CONVERT, convert, 3600)
    assert loop.turn(lane) is Run.FAILED
    row = shop.queue.get(job.id)
    assert (row.state, row.error_code, row.attempts) == (State.CREATED, "disk_full", 1)
    assert not list(shop.presence.scratch.iterdir())
    convert.is_full = False
    moments.append(at(60))
    assert loop.turn(lane) is Run.WORKED
    assert shop.queue.get(job.id).state is State.CONVERTED


def test_q22_hazard_11_a_worker_goes_on_by_itself_when_there_is_room_again(tmp_path: Path) -> None:
    """The process itself, filled up in the middle of its work: it neither ends nor gives up."""
    with (
        small_disk(tmp_path / "disk", 6 << 20) as disk,
        service(disk / "data", tiny=False, WORKER__RETRY_CAP="0.5") as running,
    ):
        jobs = [running.hand_in(_talk(tmp_path, n)) for n in range(12)]
        running.log_path = tmp_path / "worker.log"
        worker = running.start_worker(light_worker.__name__)
        running.wait(lambda: running.queue.counts()[State.DONE] >= 2, 30, "some are done")
        with filled(disk):
            running.wait(lambda: "no room left" in _log(running.log_path), 20, "it was noticed")
            assert worker.poll() is None
            for job in jobs:
                assert running.queue.get(job.id).state not in (State.DEAD, State.FAILED)
                assert running.house.storage.exists(running.queue.file(job.source_file))
        for job in jobs:
            assert running.wait_for(job, State.DONE, State.DEAD, seconds=30).state is State.DONE
            assert running.outcomes(job).count("check success") == 1
        assert worker.poll() is None


def _talk(folder: Path, number: int) -> Path:
    path = folder / f"talk-{number}"
    path.write_bytes(BYTES)
    return path


def _log(path: Path) -> str:
    return path.read_text() if path.exists() else ""
