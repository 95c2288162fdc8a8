from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db import Database
from app.migrate import open_database
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import START


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path, START)
    yield database
    database.close()


@pytest.fixture
def queue(database: Database) -> SqliteQueue:
    return SqliteQueue(database)
