"""The queue between real processes: one winner, one order, and nothing half written."""

import random
import sqlite3
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from app.db import Database
from app.queue.sqlite import SqliteQueue
from tests import chores, hand_ins
from tests.crew import Crew
from tests.processes import wait_until
from tests.queue.hands import hand_in, held

WORKERS = ("worker-a", "worker-b", "worker-c")


@pytest.fixture
def notes(database: Database) -> Iterator[sqlite3.Connection]:
    """A table of the test's own, seen by a connection of some other program."""
    with database.transaction() as connection:
        connection.execute("CREATE TABLE notes(who INTEGER, number INTEGER) STRICT")
    raw = sqlite3.connect(database.path, isolation_level=None)
    yield raw
    raw.close()


def test_p05_three_claims_one_winner(queue: SqliteQueue, data_dir: Path, crew: Crew) -> None:
    for _ in range(40):
        job = hand_in(queue)
        moment = time.monotonic() + 0.008
        got = crew.all(chores.claim_at, *[(moment, data_dir, worker) for worker in WORKERS])
        assert sorted(filter(None, got)) == [job.id]
        claimed = queue.get(job.id)
        assert claimed.worker == WORKERS[got.index(job.id)]
        assert claimed.attempts == 1


def test_p05_p06_three_workers_share_a_line_without_gap_twin_or_leap(
    queue: SqliteQueue, data_dir: Path, crew: Crew
) -> None:
    accepted = [hand_in(queue).seq for _ in range(90)]
    moment = time.monotonic() + 0.05
    shares = crew.all(chores.claim_all, *[(moment, data_dir, worker) for worker in WORKERS])
    assert sorted(chain(*shares)) == accepted
    assert all(share == sorted(share) for share in shares)


def test_p06_hazard_25_jobs_of_one_millisecond_are_claimed_in_the_order_they_were_accepted(
    queue: SqliteQueue, database: Database
) -> None:
    accepted = [hand_in(queue).id for _ in range(1000)]
    with database.read() as connection:
        times = connection.execute("SELECT count(DISTINCT created) FROM transcribe_jobs")
        assert times.fetchone()[0] == 1
    assert [held(queue).job.id for _ in accepted] == accepted


def test_p06_processes_that_hand_in_at_once_are_served_in_the_order_of_their_answers(
    queue: SqliteQueue, data_dir: Path, crew: Crew
) -> None:
    given = (time.monotonic() + 0.05, data_dir, b"OggS", None, False, 10)
    answers = crew.all(hand_ins.hand_in, *[given] * 4)
    claimed = [held(queue).job.id for _ in range(40)]
    assert {job for answer in answers for job, _ in answer} == set(claimed)
    for answer in answers:
        order = [claimed.index(job) for job, _ in answer]
        assert order == sorted(order)


def test_a_process_killed_inside_a_transaction_leaves_nothing_and_holds_up_nobody(
    database: Database, notes: sqlite3.Connection, tmp_path: Path
) -> None:
    with Crew(4) as crew:
        for number in range(4):
            inside = tmp_path / f"inside-{number}"
            crew.start(number, chores.stay_inside, database.path, inside)
            wait_until(inside.exists)
            assert notes.execute("SELECT count(*) FROM notes WHERE who = 0").fetchone()[0] == 0
            crew.kill(number)
            started = time.monotonic()
            with database.transaction() as connection:
                connection.execute("INSERT INTO notes VALUES(1, ?)", (number,))
            assert time.monotonic() - started < 2
    assert [row[0] for row in notes.execute("SELECT who FROM notes")] == [1, 1, 1, 1]


def test_processes_killed_at_any_moment_leave_only_whole_transactions(
    database: Database, notes: sqlite3.Connection, tmp_path: Path
) -> None:
    chance = random.Random(7)  # noqa: S311 - the moments only have to differ
    with Crew(6) as crew:
        for number in range(0, 6, 2):
            for member in (number, number + 1):
                begun = tmp_path / f"begun-{member}"
                crew.start(member, chores.write_pairs_for_ever, database.path, begun)
                wait_until(begun.exists)
            rest = time.monotonic() + chance.uniform(0.001, 0.03)
            wait_until(lambda rest=rest: time.monotonic() > rest)  # type: ignore[misc]
            crew.kill(number)
            crew.kill(number + 1)
            with database.transaction() as connection:
                halves = connection.execute(
                    "SELECT count(*) FILTER (WHERE who = 1), count(*) FILTER (WHERE who = 2)"
                    " FROM notes"
                ).fetchone()
            assert halves[0] == halves[1] > 0
    assert notes.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_cq09_claims_hand_ins_and_a_foreign_lock_meet_without_an_error(
    queue: SqliteQueue, data_dir: Path, database: Database, crew: Crew, tmp_path: Path
) -> None:
    taken, release = tmp_path / "taken", tmp_path / "release"
    crew.start(0, chores.hold_exclusively, database.path, taken, release)
    try:
        wait_until(taken.exists)
        for number in range(1, 5):
            crew.start(number, hand_ins.hand_in, 0, data_dir, b"OggS", None, False, 5)
        assert queue.counts()  # a reader does not wait
    finally:
        release.touch()
    answers = [crew.answer(number) for number in range(5)][1:]
    moment = time.monotonic() + 0.02
    shares = crew.all(chores.claim_all, *[(moment, data_dir, worker) for worker in WORKERS])
    assert len(set(chain(*shares))) == sum(map(len, shares)) == sum(map(len, answers)) == 20


@pytest.fixture
def data_dir(database: Database) -> Path:
    return database.path.parent
