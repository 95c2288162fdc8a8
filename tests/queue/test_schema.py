"""What the tables themselves refuse, and how each statement finds its rows."""

import itertools
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from app.clock import new_id, to_text
from app.db import Connection, Database
from app.job import ACTIVE, ENDS, Job, State, StoredFile
from app.queue import records, replies
from app.queue.port import Claim
from app.queue.records import SQL as JOB_SQL
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import START, at, claim, hand_in

NOW = to_text(START)
TIME_COLUMN = re.compile(
    r"created|updated|deleted|time|\w+_time|\w+_at|\w+_until|applied|expires|tried|last_\w+|revoked"
)
OTHER_FORMS = (
    "2026-03-01T12:00:00.000Z",
    "2026-03-01 12:00:00Z",
    "2026-03-01 12:00:00.000",
    "2026-03-01 12:00:00.000000Z",
    "2026-03-01 12:00:00.000+00:00",
    "2026-03-01 12:00:00.000Z ",
    "2026-3-1 12:00:00.000Z",
    "1772366400000",
    1772366400000,
    1772366400.5,
    b"2026-03-01 12:00:00.000Z",
    "now",
    "",
)


@pytest.fixture
def raw(database: Database) -> Iterator[Connection]:
    """A connection of some other program."""
    connection = sqlite3.connect(database.path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    yield connection
    connection.close()


def tables(connection: Connection) -> list[str]:
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    return [row[0] for row in found]


def columns(connection: Connection, table: str) -> dict[str, tuple[str, bool]]:
    """Of each column its type, and whether it may be NULL."""
    found = connection.execute(f"PRAGMA table_info({table})")
    return {row[1]: (row[2], not row[3] and not row[5]) for row in found}


def test_s07_hazard_23_the_fields_of_a_job_are_the_columns_of_its_table_in_order(
    raw: Connection,
) -> None:
    assert [field.name for field in fields(Job)] == list(columns(raw, "transcribe_jobs"))


def test_s07_the_fields_of_a_stored_file_are_columns_of_files(raw: Connection) -> None:
    ours = {field.name for field in fields(StoredFile)}
    assert ours == set(columns(raw, "files")) - {"created", "updated"}


def test_every_table_is_strict(raw: Connection) -> None:
    loose = raw.execute(
        "SELECT name FROM pragma_table_list"
        " WHERE schema = 'main' AND type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'"
    )
    assert loose.fetchall() == []


def any_row(connection: Connection, table: str, *, with_nulls: bool, state: State) -> None:
    """A row of the right types that no other rule of the table has judged."""
    values: dict[str, Any] = {}
    for name, (kind, may_be_null) in columns(connection, table).items():
        simple = {"TEXT": NOW if TIME_COLUMN.fullmatch(name) else "x", "INTEGER": 1, "REAL": 0.5}
        simple["TEXT"] = state if name == "state" else simple["TEXT"]
        values[name] = None if with_nulls and may_be_null else simple[kind]
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(f"DELETE FROM {table}")
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.execute(f"INSERT INTO {table}({names}) VALUES({marks})", values)
    connection.execute("PRAGMA ignore_check_constraints = OFF")


def is_taken(connection: Connection, table: str, column: str, value: object) -> bool:
    """SQLite judges an update by the checks that name a changed column, and by no other."""
    try:
        connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
    except sqlite3.IntegrityError:
        return False
    return True


def test_p12_cq07_hazard_05_every_time_column_refuses_every_other_form(raw: Connection) -> None:
    raw.execute("PRAGMA synchronous = OFF")  # hundreds of small commits that nobody keeps
    raw.execute("PRAGMA foreign_keys = OFF")
    raw.execute("DROP TRIGGER count_deleted_job")  # else the strange rows are counted
    raw.execute("DROP TRIGGER count_new_job")
    good, judged = (to_text(at(-60)), to_text(at(60))), set()
    for table in tables(raw):
        for column in filter(TIME_COLUMN.fullmatch, columns(raw, table)):
            taken: Counter[object] = Counter()
            kinds = itertools.product((True, False), (State.CREATED, State.DONE))
            for with_nulls, state in kinds:
                for value in (*good, *OTHER_FORMS):
                    any_row(raw, table, with_nulls=with_nulls, state=state)
                    taken[value] += is_taken(raw, table, column, value)
            assert any(taken[value] for value in good), f"{table}.{column} takes no time at all"
            refused = {value for value in OTHER_FORMS if not taken[value]}
            assert refused == set(OTHER_FORMS), f"{table}.{column}"
            judged.add(f"{table}.{column}")
    assert judged > {
        "transcribe_jobs.delay_time",
        "transcribe_jobs.acquire_time",
        "job_events.time",
        "schema_steps.applied",
    }
    assert len(judged) >= 20


def test_p12_no_column_that_holds_times_has_a_name_that_hides_it(raw: Connection) -> None:
    scripts = raw.execute("SELECT sql FROM sqlite_master WHERE type = 'table'").fetchall()
    checked = {
        name for (sql,) in scripts if sql for name in re.findall(r"(\w+) GLOB '\[0-9\]\[0-9\]", sql)
    }
    assert checked
    assert not [name for name in checked if not TIME_COLUMN.fullmatch(name)]


def test_s05_a_time_that_is_not_set_is_null(raw: Connection) -> None:
    for table in tables(raw):
        for _, name, _, _, default, _ in raw.execute(f"PRAGMA table_info({table})"):
            if TIME_COLUMN.fullmatch(name):
                assert default is None, f"{table}.{name}"


GOOD_FILE = {
    "id": "file00000000001",
    "file": "a.ogg",
    "location": "local",
    "object_key": "",
    "size": 1,
    "sha256": None,
    "media_type": "audio/ogg",
    "created": NOW,
    "updated": NOW,
}
GOOD_JOB: dict[str, Any] = {
    "id": "job000000000001",
    "state": "created",
    "source": "api",
    "display_name": "talk.ogg",
    "source_file": GOOD_FILE["id"],
    "file": GOOD_FILE["id"],
    "created": NOW,
    "updated": NOW,
}
CLAIM = {"acquisition_id": "t", "acquire_time": NOW, "worker": "w"}
FAILED = {"state": "failed", "error_code": "not_media", "ended_from": "created"}


def insert(connection: Connection, table: str, values: dict[str, Any]) -> None:
    names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    connection.execute(f"INSERT INTO {table}({names}) VALUES({marks})", values)


@pytest.fixture
def jobs(raw: Connection) -> Connection:
    insert(raw, "files", GOOD_FILE)
    return raw


@pytest.mark.parametrize(
    "changes",
    [
        {},
        CLAIM,
        CLAIM | {"attempts": 5, "progress": 1.0, "state": "transcribe"},
        {"delay_time": NOW},
        FAILED,
        FAILED | {"state": "dead"},
        {"state": "done", "language": "yue", "duration_seconds": 0.0},
        {"source": "telegram", "tg_chat_id": -(2**53), "tg_reply_message_id": 1},
    ],
)
def test_a_possible_job_is_taken(jobs: Connection, changes: dict[str, Any]) -> None:
    insert(jobs, "transcribe_jobs", GOOD_JOB | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "job00000000001"},
        {"id": "job0000000000001"},
        {"id": "Job000000000001"},
        {"id": "job00000000000-"},
        {"id": "job00000000000é"},
        {"id": None},
        {"state": "running"},
        {"state": ""},
        {"state": None},
        {"source": "mail"},
        {"display_name": ""},
        {"display_name": "x" * 256},
        {"language": ""},
        {"language": "english"},
        {"language": "EN"},
        {"file": "file00000000002"},
        {"source_file": "file00000000002"},
        {"playable_file": "file00000000002"},
        {"acquisition_id": "t"},
        {"worker": "w"},
        {"acquire_time": NOW},
        {"acquisition_id": "t", "worker": "w"},
        {"acquisition_id": "t", "acquire_time": NOW},
        {"worker": "w", "acquire_time": NOW},
        CLAIM | {"acquisition_id": ""},
        CLAIM | {"worker": ""},
        CLAIM | {"delay_time": NOW},
        CLAIM | {"state": "done"},
        CLAIM | FAILED,
        {"delay_time": NOW, "state": "done"},
        FAILED | {"delay_time": NOW},
        {"state": "failed", "ended_from": "created"},
        {"state": "failed", "error_code": "not_media"},
        {"state": "dead"},
        FAILED | {"error_code": ""},
        FAILED | {"ended_from": "done"},
        {"attempts": -1},
        {"attempts": None},
        {"attempts": "many"},
        {"progress": 1.01},
        {"progress": -0.01},
        {"duration_seconds": -1.0},
        {"recognition_op_id": ""},
        {"tg_chat_id": "@somebody"},
        {"delay_time": ""},
    ],
)
def test_hazard_06_an_impossible_job_is_refused(jobs: Connection, changes: dict[str, Any]) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        insert(jobs, "transcribe_jobs", GOOD_JOB | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "short"},
        {"file": ""},
        {"location": "s3"},
        {"location": "s3", "object_key": "k"},
        {"location": "tape"},
        {"object_key": "k"},
        {"size": -1},
        {"size": 0.5},
        {"sha256": "abc"},
        {"sha256": "G" * 64},
    ],
)
def test_hazard_06_an_impossible_file_is_refused(raw: Connection, changes: dict[str, Any]) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        insert(raw, "files", GOOD_FILE | changes)


def test_a_copy_in_object_storage_is_taken(raw: Connection) -> None:
    insert(raw, "files", GOOD_FILE | {"file": "", "location": "s3", "object_key": "files/k"})


def test_what_belongs_to_a_job_goes_with_it(jobs: Connection, queue: SqliteQueue) -> None:
    job = hand_in(queue)
    assert jobs.execute("SELECT count(*) FROM job_events").fetchone()[0] == 1
    with pytest.raises(sqlite3.IntegrityError):
        jobs.execute("DELETE FROM files WHERE id = ?", (job.file,))
    jobs.execute("DELETE FROM transcribe_jobs")
    assert jobs.execute("SELECT count(*) FROM job_events").fetchone()[0] == 0
    jobs.execute("DELETE FROM files WHERE id = ?", (job.file,))


def test_s03_ids_are_issued_in_the_one_form(queue: SqliteQueue) -> None:
    ids = {hand_in(queue).id for _ in range(50)}
    assert len(ids) == 50
    assert all(re.fullmatch(r"[a-z0-9]{15}", one) for one in ids)


def test_p06_hazard_24_an_acceptance_number_is_never_used_twice(
    raw: Connection, queue: SqliteQueue
) -> None:
    newest = [hand_in(queue).seq for _ in range(3)][-1]
    raw.execute("DELETE FROM transcribe_jobs")
    assert hand_in(queue).seq > newest


def test_the_counts_stay_true_whatever_is_done_to_the_jobs(
    jobs: Connection, queue: SqliteQueue
) -> None:
    chance = random.Random(20260301)  # noqa: S311 - the same walk each time
    states = [state.value for state in State]

    def some() -> str:
        return f"seq % 7 = {chance.randrange(7)}"

    def add(_: str) -> None:
        insert(jobs, "transcribe_jobs", GOOD_JOB | FAILED | {"id": new_id(), "state": "dead"})

    def move(state: str) -> None:
        jobs.execute(
            f"UPDATE transcribe_jobs SET state = ? WHERE deleted IS NULL AND {some()}", (state,)
        )

    def put_in_bin(_: str) -> None:
        ended = "state IN ('done', 'failed', 'dead')"
        jobs.execute(f"UPDATE transcribe_jobs SET deleted = ? WHERE {ended} AND {some()}", (NOW,))

    def take_out(_: str) -> None:
        jobs.execute(f"UPDATE transcribe_jobs SET deleted = NULL WHERE {some()}")

    def delete(_: str) -> None:
        jobs.execute(f"DELETE FROM transcribe_jobs WHERE seq % 20 = {chance.randrange(20)}")

    def undo(state: str) -> None:
        jobs.execute("BEGIN")
        move(state)
        delete(state)
        jobs.execute("ROLLBACK")

    does: list[Callable[[str], None]] = [add, add, add, move, put_in_bin, take_out, delete, undo]
    for _ in range(500):
        chance.choice(does)(chance.choice(states))
    found = dict(
        jobs.execute(
            "SELECT state, count(*) FROM transcribe_jobs WHERE deleted IS NULL GROUP BY state"
        )
    )
    assert jobs.execute("SELECT count(*) FROM transcribe_jobs WHERE deleted").fetchone()[0] > 1
    assert sum(found.values()) > 10
    assert queue.counts() == {state: found.get(state.value, 0) for state in State}


def test_the_states_of_the_schema_are_those_of_the_code(raw: Connection) -> None:
    assert {row[0] for row in raw.execute("SELECT state FROM job_counts")} == set(State)
    assert set(ACTIVE) | set(ENDS) == set(State)


SQL = {**JOB_SQL, **replies.SQL}
STATEMENTS = "\n".join(
    Path(records.__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("sqlite.sql", "replies.sql")
)
ON_READY, ON_PAUSED, ON_HELD = "jobs_ready", "jobs_paused", "jobs_held"
# How each statement that runs at every poll or at every claim finds its rows (S06).
CLAIM_PATH = {
    "work_at_hand": {
        f"{ON_READY} (state=?)",
        f"{ON_PAUSED} (state=? AND delay_time>? AND delay_time<?)",
        f"{ON_PAUSED} (state=? AND delay_time>?)",
        f"{ON_HELD} (state=? AND acquire_time<?)",
    },
    "end_pauses": {
        f"{ON_PAUSED} (state=? AND delay_time>? AND delay_time<?)",
        f"{ON_PAUSED} (state=? AND delay_time>?)",
    },
    "end_leases": {f"{ON_HELD} (state=? AND acquire_time<?)"},
    "claim": {f"{ON_READY} (state=?)"},
    "holders": {f"{ON_HELD} (state=?)"},
    "release_worker": {f"{ON_HELD} (state=?)"},
    "position": {
        f"{ON_READY} (state=? AND priority>?)",
        f"{ON_READY} (state=? AND priority=? AND turn<?)",
    },
    "oldest_waiting": {"jobs_list (state=?)"},
    "page_of_state": {"jobs_list (state=? AND seq<?)"},
}


def plan(connection: Connection, statement: str) -> list[str]:
    values = dict.fromkeys(re.findall(r":(\w+)", SQL[statement]))
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {SQL[statement]}", values)]


def test_s07_every_statement_is_named_once_and_found() -> None:
    names = re.findall(r"^-- name: (\S+)", STATEMENTS, re.MULTILINE)
    assert len(names) == len(set(names)) == len(SQL)
    assert set(names) == set(SQL)


@pytest.mark.parametrize("statement", SQL)
def test_every_statement_compiles_and_walks_no_whole_table(raw: Connection, statement: str) -> None:
    # Of a partial index that holds little, all of it may be walked.
    small = {
        "SCAN transcribe_jobs USING INDEX jobs_bin",
        "SCAN replies USING INDEX replies_owed",
    }
    whole = {"SCAN CONSTANT ROW", "SCAN job_counts", "SCAN paused_steps"} | small
    steps = {step for step in plan(raw, statement) if step.startswith("SCAN ")}
    assert not {step for step in steps if "(subquery-" not in step} - whole


@pytest.mark.parametrize("statement", CLAIM_PATH)
@pytest.mark.parametrize("statistics", ["none", "misleading"])
def test_s06_a_claim_is_served_by_its_partial_indexes(
    raw: Connection, queue: SqliteQueue, statement: str, statistics: str
) -> None:
    if statistics == "misleading":
        for _ in range(3):
            hand_in(queue)
        raw.execute("ANALYZE")
        raw.execute("UPDATE sqlite_stat1 SET stat = '1000000 1000000 1000000'")
        raw.execute("ANALYZE sqlite_master")
    steps = plan(raw, statement)
    found = {step.split(" INDEX ", 1)[1] for step in steps if re.search(r"INDEX jobs_\w+ ", step)}
    assert found == CLAIM_PATH[statement]
    if statement != "holders":  # a handful of names, sorted to tell them apart
        assert not [step for step in steps if "TEMP B-TREE" in step]


def test_s06_the_indexes_of_the_claim_hold_only_jobs_that_wait_or_run(raw: Connection) -> None:
    for index in (ON_READY, ON_PAUSED, ON_HELD):
        (sql,) = raw.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchone()
        assert "state IN ('created', 'converted', 'transcribe')" in sql.split("WHERE")[1]


class _UndoError(Exception):
    """Nothing of what was measured stays."""


def work(database: Database, queue: SqliteQueue) -> dict[str, int]:
    """What the parts of a claim cost, in steps of SQLite's machine; a clock would be noisy."""
    values = {
        "state": "created",
        "step": "convert",
        "now": NOW,
        "horizon": to_text(at(300)),
        "lease_start": to_text(at(-3600)),
        "acquisition_id": "t",
        "worker": "w",
    }
    found = {}
    for statement in ("work_at_hand", "end_pauses", "end_leases", "claim"):
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        with pytest.raises(_UndoError), database.transaction() as connection:
            connection.set_progress_handler(count, 1)
            records.run(connection, statement, values).fetchall()
            connection.set_progress_handler(None, 1)
            raise _UndoError
        found[statement] = steps
    return found


def fill(connection: Connection, number: int, **columns: Any) -> None:
    """Many jobs of one kind, without their events."""
    connection.execute("BEGIN")
    for _ in range(number):
        insert(connection, "transcribe_jobs", GOOD_JOB | {"id": new_id()} | columns)
    connection.execute("COMMIT")


def test_s06_a_claims_work_does_not_grow_with_ended_paused_or_running_jobs(
    jobs: Connection, database: Database, queue: SqliteQueue
) -> None:
    for _ in range(20):
        hand_in(queue)
    before = work(database, queue)
    fill(jobs, 1000, state="done")
    fill(jobs, 1000, **FAILED)
    fill(jobs, 1000, delay_time=to_text(at(100)))
    fill(jobs, 1000, **CLAIM)
    fill(jobs, 1000, state="converted")
    hand_in(queue)
    after = work(database, queue)
    assert all(after[name] <= 1.5 * before[name] + 20 for name in before), (before, after)
    taken = claim(queue)
    assert isinstance(taken, Claim)
    assert taken.job.seq == 1


def test_s06_an_idle_polls_work_does_not_grow_with_paused_jobs(
    jobs: Connection, database: Database, queue: SqliteQueue
) -> None:
    fill(jobs, 1, delay_time=to_text(at(100)))
    before = work(database, queue)
    fill(jobs, 3000, delay_time=to_text(at(100)))
    after = work(database, queue)
    assert all(after[name] <= before[name] + 20 for name in before), (before, after)


def test_a_storm_of_ended_pauses_is_taken_in_bounded_parts(
    jobs: Connection, queue: SqliteQueue
) -> None:
    fill(jobs, 150, delay_time=to_text(at(-1)))
    fill(jobs, 150, delay_time=to_text(at(3600)))  # set before the clock stepped back
    waiting = "SELECT count(*) FROM transcribe_jobs WHERE delay_time IS NOT NULL"
    claim(queue)
    assert jobs.execute(waiting).fetchone()[0] == 100
    claim(queue)
    assert jobs.execute(waiting).fetchone()[0] == 0
