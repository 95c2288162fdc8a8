"""A web app over a real store in tmp_path; time is what the test says it is."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import assembly, liveness
from app.assembly import House
from app.settings import Settings
from app.web.factory import create_app
from app.web.services import Services
from tests.web.visitor import PASSWORD, Visitor


class Clock:
    """The present moment, which only the test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go_on(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """What most tests want; a test file gives its own to change it."""
    return make_settings(tmp_path)


def make_settings(tmp_path: Path, **sections: dict[str, object]) -> Settings:
    sections.setdefault("storage", {})["data_dir"] = tmp_path / "data"
    return Settings.model_validate(sections)


@pytest.fixture
def house(settings: Settings) -> Iterator[House]:
    with assembly.opened(settings, liveness.WEB) as house:
        yield house


@pytest.fixture
def workers() -> list[int]:
    """One number: how many workers the app believes are alive."""
    return [1]


@pytest.fixture
def app(house: House, clock: Clock, workers: list[int]) -> Flask:
    app = create_app(
        Services(
            settings=house.settings,
            database=house.database,
            queue=house.queue,
            storage=house.storage,
            intake=house.intake,
            owners=house.owners,
            workers_alive=lambda: workers[0],
            clock=clock,
        )
    )
    app.testing = True
    return app


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """Nobody: a program without a token or a cookie."""
    return app.test_client()


@pytest.fixture
def owner(house: House, clock: Clock) -> str:
    """The owner's id; the owner's name is scribe."""
    token = house.owners.invite(clock())
    return house.owners.accept_invitation(token, "scribe", PASSWORD, clock()).id


@pytest.fixture
def visitor(app: Flask) -> Visitor:
    """A browser that nobody has signed in with."""
    return Visitor(app)


@pytest.fixture
def signed_in(app: Flask, owner: str) -> Visitor:
    """The owner's visitor."""
    visitor = Visitor(app)
    assert visitor.sign_in().status_code == 303
    return visitor
