"""What all tests share: a moment, a data directory, its store, and a crew of real processes."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.db import Database
from app.migrate import open_database
from tests.crew import Crew


@pytest.fixture
def now() -> datetime:
    return datetime(2026, 3, 1, 12, 0, 0, 123000, tzinfo=UTC)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def database(data_dir: Path, now: datetime) -> Iterator[Database]:
    opened = open_database(data_dir, now)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    with Crew(8) as members:
        yield members
