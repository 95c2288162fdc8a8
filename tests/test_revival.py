"""An ended job goes back to work from what is still there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.db import Database
from app.errors import AppError
from app.job import Job, Source, State, StoredFile
from app.migrate import open_database
from app.queue.port import Converted, NewJob
from app.queue.sqlite import SqliteQueue
from app.revival import revive
from app.storage.local import LocalStorage
from tests.queue.hands import START, held, started


class House:
    """A queue and a storage with one job that failed after its conversion."""

    def __init__(self, data_dir: Path) -> None:
        self.database: Database = open_database(data_dir, START)
        self.queue = SqliteQueue(self.database)
        self.scratch = data_dir / "tmp"
        self.scratch.mkdir()
        self.storage = LocalStorage(data_dir, self.scratch)

    def failed(self, code: str = "source_missing", *, is_playable: bool = True) -> Job:
        new = NewJob(self.stored(b"source"), Source.API, "talk.ogg")
        job = self.queue.enqueue(new, START).job
        convert = held(self.queue, State.CREATED)
        assert self.queue.finish(convert, Converted(self.stored(b"sound"), 1.0, is_playable), START)
        assert self.queue.finish(held(self.queue, State.CONVERTED), started(), START)
        check = held(self.queue, State.TRANSCRIBE)
        assert self.queue.fail(check, AppError(code), START)
        return self.queue.get(job.id)

    def stored(self, data: bytes) -> StoredFile:
        path = self.scratch / "part"
        path.write_bytes(data)
        return self.storage.adopt(path, ".wav", "audio/wav")

    def path(self, file_id: str) -> Path:
        return self.storage.local_path(self.queue.file(file_id))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.database.close()


def test_p15_with_its_copy_whole_a_job_goes_on_where_it_ended(house: House) -> None:
    job = house.failed()
    revived = revive(house.queue, house.storage, job.id, START)
    assert (revived.state, revived.file) == (State.TRANSCRIBE, job.file)


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_bytes(b"so")], ids=["gone", "cut short"]
)
def test_p15_without_its_copy_a_job_begins_anew_from_its_source(
    house: House, damage: Callable[[Path], object]
) -> None:
    job = house.failed()
    damage(house.path(job.file))
    revived = revive(house.queue, house.storage, job.id, START)
    assert (revived.state, revived.file) == (State.CREATED, job.source_file)
    assert held(house.queue, State.CREATED).job.id == job.id


def test_p15_a_job_whose_copy_could_not_be_read_begins_anew(house: House) -> None:
    """Of the right length and yet rotten: each revive would end where the last one did."""
    job = house.failed("storage_failed")
    assert revive(house.queue, house.storage, job.id, START).file == job.source_file


@pytest.mark.parametrize("is_playable", [True, False])
def test_s31_a_copy_that_is_made_anew_leaves_neither_row_nor_bytes(
    house: House, is_playable: bool
) -> None:
    """A copy that no row of its job names would outlive the bin."""
    job = house.failed("storage_failed", is_playable=is_playable)
    old = house.queue.file(job.file)
    revive(house.queue, house.storage, job.id, START)
    assert not house.storage.exists(old)
    with pytest.raises(AppError):
        house.queue.file(old.id)
    again = Converted(house.stored(b"sound"), 1.0, is_playable)
    assert house.queue.finish(held(house.queue, State.CREATED), again, START)
    files = {file.id for file in house.queue.files_of(job.id)}
    assert files == {job.source_file, again.file.id}
    assert house.queue.get(job.id).playable_file in files


def test_p15_a_job_whose_source_is_gone_goes_on_with_its_copy(house: House) -> None:
    job = house.failed("storage_failed")
    house.path(job.source_file).unlink()
    assert revive(house.queue, house.storage, job.id, START).file == job.file


def test_p15_with_nothing_left_a_job_stays_where_it_is(house: House) -> None:
    job = house.failed()
    for file_id in (job.file, job.source_file):
        house.path(file_id).unlink()
    with pytest.raises(AppError, match="file is gone"):
        revive(house.queue, house.storage, job.id, START)
    assert house.queue.get(job.id) == job
