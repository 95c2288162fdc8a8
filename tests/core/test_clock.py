import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import clock

ROOT = Path(__file__).resolve().parents[2]
MOMENTS = st.datetimes(
    # A zone of up to a day must not carry a moment out of the calendar.
    min_value=datetime(1, 1, 3),  # noqa: DTZ001 - the zone is drawn below
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001 - likewise
    timezones=st.integers(-1439, 1439).map(lambda n: timezone(timedelta(minutes=n))),
)
OTHER_MAKERS = re.compile(
    r"isoformat\(|\.utcnow\(\)\.strftime|datetime\('now|CURRENT_TIME|CURRENT_DATE"
    r"|julianday\(|unixepoch\(|strftime\('",
    re.IGNORECASE,
)


def test_p12_a_time_has_one_form() -> None:
    moment = datetime(2026, 3, 1, 15, 4, 5, 67999, tzinfo=timezone(timedelta(hours=3)))
    assert clock.to_text(moment) == "2026-03-01 12:04:05.067Z"
    assert clock.to_rfc3339(moment) == "2026-03-01T12:04:05.067Z"


@given(MOMENTS, MOMENTS)
def test_p12_comparing_bytes_compares_times(one: datetime, other: datetime) -> None:
    one, other = (m.replace(microsecond=m.microsecond // 1000 * 1000) for m in (one, other))
    texts = clock.to_text(one), clock.to_text(other)
    assert (texts[0] < texts[1], texts[0] == texts[1]) == (one < other, one == other)


@given(MOMENTS)
def test_p12_a_stored_time_is_read_back_to_the_millisecond(moment: datetime) -> None:
    read = clock.from_text(clock.to_text(moment))
    assert read.tzinfo is UTC
    assert timedelta(0) <= moment - read < timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-03-01T12:00:00.123Z",
        "2026-03-01 12:00:00Z",
        "2026-03-01 12:00:00.123",
        "2026-03-01 12:00:00.123456Z",
        "2026-03-01 12:00:00.123+00:00",
        " 2026-03-01 12:00:00.123Z",
        "2026-03-01 12:00:00.123Z\n",
        "2026-3-1 12:00:00.123Z",
        "2026-13-01 12:00:00.123Z",
        "2026-02-30 12:00:00.123Z",
        "2026-03-01 12:00:60.123Z",
        "1772366400123",
        "٢٠٢٦-03-01 12:00:00.123Z",
    ],
)
def test_p12_any_other_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        clock.from_text(text)


def test_p12_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        clock.to_text(datetime(2026, 3, 1))  # noqa: DTZ001 - that is the point


def test_the_present_moment_is_what_the_store_keeps_of_it() -> None:
    before = datetime.now(UTC)
    moment = clock.utcnow()
    assert timedelta(milliseconds=-1) < moment - before < timedelta(seconds=5)
    assert clock.from_text(clock.to_text(moment)) == moment


def test_later_goes_both_ways(now: datetime) -> None:
    assert clock.later(clock.later(now, 0.5), -0.5) == now


def test_cq07_nothing_else_in_the_code_makes_or_writes_times() -> None:
    sources = [
        path
        for folder in ("app", "worker", "migrations")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".sql")
    ]
    assert len(sources) > 30
    found = {
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OTHER_MAKERS.search(line)
    }
    assert not found


def test_s03_ids_are_15_of_a_to_z_and_digits_and_do_not_repeat() -> None:
    ids = {clock.new_id() for _ in range(20_000)}
    assert len(ids) == 20_000
    assert all(re.fullmatch(r"[a-z0-9]{15}", one) for one in ids)
    assert {sign for one in ids for sign in one} == set("abcdefghijklmnopqrstuvwxyz0123456789")


def test_a_claims_token_is_256_bits_in_url_safe_characters() -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", clock.new_token())
    assert clock.new_token() != clock.new_token()
