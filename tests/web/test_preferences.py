"""Language, theme and zone: chosen, kept, and never trusted."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask

from app.assembly import House
from app.web import i18n
from tests.web.conftest import Clock
from tests.web.hands import hand_in
from tests.web.visitor import Visitor


@pytest.fixture
def asked(app: Flask) -> Iterator[None]:
    with app.test_request_context(headers={"Accept-Language": "ru"}):
        yield


def test_the_language_is_the_readers(visitor: Visitor) -> None:
    assert (
        "Отправить запись" in visitor.get("/", headers={"Accept-Language": "ru-RU,en;q=0.5"}).text
    )
    assert "Hand in a recording" in visitor.get("/", headers={"Accept-Language": "de"}).text


def test_a_chosen_language_wins_over_the_browsers(visitor: Visitor) -> None:
    answer = visitor.post("/preferences", {"language": "ru", "next": "/?job=x"})
    assert (answer.status_code, answer.location) == (303, "/?job=x")
    page = visitor.get("/", headers={"Accept-Language": "en"}).text
    assert '<html lang="ru"' in page


def test_a_theme_is_kept_until_it_follows_the_device_again(visitor: Visitor) -> None:
    visitor.post("/preferences", {"theme": "dark"})
    assert 'data-theme="dark"' in visitor.get("/").text
    visitor.post("/preferences", {"theme": "auto"})
    assert "data-theme" not in visitor.get("/").text


@pytest.mark.parametrize(
    "elsewhere", ["//evil.example", "/\\evil", "https://evil.example", "/\t/e"]
)
def test_a_choice_leads_to_no_other_site(visitor: Visitor, elsewhere: str) -> None:
    assert visitor.post("/preferences", {"language": "ru", "next": elsewhere}).location == "/"


def test_an_unknown_choice_changes_nothing(visitor: Visitor) -> None:
    answer = visitor.post("/preferences", {"language": "xx<script>"})
    assert "Set-Cookie" not in answer.headers


def test_cp10_times_are_in_the_zone_that_the_browser_named(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    assert "30 Nov 2026, 12:00</time>" in visitor.get(f"/jobs/{job.id}").text
    visitor.client.set_cookie("zone", "Asia%2FVladivostok")
    page = visitor.get(f"/jobs/{job.id}").text
    assert "30 Nov 2026, 22:00</time>" in page
    assert 'datetime="2026-11-30T12:00:00.000Z"' in page
    assert "Asia/Vladivostok" in page


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "", "\x00", "Europe"])
def test_an_unknown_zone_is_utc(visitor: Visitor, zone: str) -> None:
    visitor.client.set_cookie("zone", zone)
    answer = visitor.get("/")
    assert answer.status_code == 200
    assert 'data-zone="UTC"' in answer.text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "–"), (0, "0:00"), (59.9, "0:59"), (750, "12:30"), (3723, "1:02:03")],
)
def test_lengths_are_written_as_players_do(seconds: float | None, shown: str) -> None:
    assert i18n.sound_length(seconds) == shown


@pytest.mark.usefixtures("asked")
def test_numbers_and_sizes_follow_the_language() -> None:
    assert i18n.file_size(8 * 1024**3) == "8 ГБ"
    assert i18n.file_size(13_000_000) == "12,4 МБ"
    assert i18n.number(1_234_567).replace("\xa0", " ") == "1 234 567"
    assert i18n.percent(0.999).replace("\xa0", " ") == "99 %"
    assert i18n.language_name("en") == "Английский"
    assert i18n.ordinal(3) == "3-я"


@pytest.mark.usefixtures("asked")
def test_a_moment_of_another_day_has_its_date(app: Flask, clock: Clock) -> None:
    assert "12:00" in i18n.clock_time(clock())
    assert "1 дек. 2026" in i18n.clock_time(clock() + timedelta(days=1))
    assert app.testing


@pytest.mark.usefixtures("asked")
def test_a_moment_ahead_is_never_told_as_to_come() -> None:
    assert "назад" in i18n.ago(datetime(2030, 1, 1, tzinfo=UTC))
