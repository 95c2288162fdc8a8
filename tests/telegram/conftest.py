"""A Telegram on loopback for each test."""

from collections.abc import Iterator

import pytest

from tests.telegram.double import Telegram


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with Telegram() as double:
        yield double
