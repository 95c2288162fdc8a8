"""Where the tests of this folder put their data, and small disks of their own."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db import Database
from app.migrate import open_database
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import START

MEMORY = Path("/dev/shm")


@pytest.fixture
def quick_dir(tmp_path: Path) -> Iterator[Path]:
    """A data directory in memory where there is one, for thousands of commits.

    For tests that kill processes: what the disk was told matters only when the power goes.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="pisar-test-", dir=MEMORY)
    except OSError:
        yield tmp_path / "data"
        return
    with folder as name:
        yield Path(name) / "data"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path, START)
    yield database
    database.close()


@pytest.fixture
def queue(database: Database) -> SqliteQueue:
    return SqliteQueue(database)
