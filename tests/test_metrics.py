import logging
import socket
from collections.abc import Iterator
from datetime import datetime

import pytest
from prometheus_client import generate_latest

from app import metrics
from app.clock import later
from app.db import Database
from app.job import State
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import hand_in, held


@pytest.fixture
def queue(database: Database) -> Iterator[SqliteQueue]:
    found = SqliteQueue(database)
    collector = metrics.watch(found)
    yield found
    metrics.registry.unregister(collector)


def scraped() -> dict[str, float]:
    lines = generate_latest(metrics.registry).decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


def test_every_series_begins_at_zero_so_that_the_first_failure_is_a_rise() -> None:
    shown = scraped()
    for step in ("convert", "recognize", "check"):
        for outcome in ("success", "failure"):
            name = f'transcriber_worker_runs_total{{outcome="{outcome}",step="{step}"}}'
            assert name in shown
        assert f'transcriber_claims_lost_total{{step="{step}"}}' in shown
    for source in ("api", "web", "telegram", "unknown"):
        assert f'transcriber_accepted_total{{source="{source}"}}' in shown
    for reason in ("intake_down", "no_addressee", "rejected", "unreachable"):
        assert f'transcriber_undelivered_reply_count_total{{reason="{reason}"}}' in shown
    assert "transcriber_audio_seconds_total" in shown


def test_no_series_has_a_twin_that_tells_when_it_was_made() -> None:
    assert [name for name in scraped() if "_created" in name] == []


def test_the_depth_of_the_queue_is_asked_for_at_each_scrape(
    queue: SqliteQueue, monkeypatch: pytest.MonkeyPatch, now: datetime
) -> None:
    monkeypatch.setattr("app.clock.utcnow", lambda: later(now, 90))
    assert scraped()['transcriber_jobs{state="created"}'] == 0
    assert scraped()['transcriber_oldest_waiting_seconds{state="created"}'] == 0
    hand_in(queue, now)
    hand_in(queue, later(now, 60))
    assert scraped()['transcriber_jobs{state="created"}'] == 2
    assert scraped()['transcriber_oldest_waiting_seconds{state="created"}'] == 90
    held(queue, State.CREATED, later(now, 61))
    assert scraped()['transcriber_jobs{state="created"}'] == 2
    assert scraped()['transcriber_oldest_waiting_seconds{state="created"}'] <= 90


def test_hazard_09_the_log_of_the_database_is_measured(database: Database) -> None:
    metrics.queue_wal_bytes.set_function(database.wal_bytes)
    before = scraped()["transcriber_queue_wal_bytes"]
    with database.transaction() as connection:
        connection.execute("CREATE TABLE some(number INTEGER) STRICT")
    assert scraped()["transcriber_queue_wal_bytes"] > before > 0
    metrics.queue_wal_bytes.set_function(lambda: 0.0)


def test_a_clock_set_back_shows_no_negative_wait(
    queue: SqliteQueue, monkeypatch: pytest.MonkeyPatch, now: datetime
) -> None:
    hand_in(queue, now)
    monkeypatch.setattr("app.clock.utcnow", lambda: later(now, -3600))
    assert scraped()['transcriber_oldest_waiting_seconds{state="created"}'] == 0


def test_a_taken_port_is_a_warning_that_names_the_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        caplog.at_level(logging.WARNING, "app.metrics"),
    ):
        assert not metrics.serve(taken.getsockname()[1], "worker.metrics_port")
    (record,) = caplog.records
    assert "worker.metrics_port" in record.getMessage()


def test_port_zero_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert not metrics.serve(0, "server.metrics_port")
    assert caplog.records == []
