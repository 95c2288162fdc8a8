import hashlib
import sqlite3
import time
from datetime import datetime
from pathlib import Path

import pytest

from app.clock import to_text
from app.db import Database
from app.errors import AppError
from app.migrate import DATABASE_NAME, applied_steps, open_database, split
from app.resources import MIGRATIONS
from tests import chores
from tests.crew import Crew

STEPS = sorted((MIGRATIONS / "sqlite").glob("*.sql"))

# What each step was when it was merged. A change of the schema is a new step: this list grows,
# and a line of it never changes once a version with that step is released.
DIGESTS = {
    "0001_queue.sql": "e64a8d0c104e731856aa01929c61bf29c001cb2ac657b02c2a4d8e469e0c4bb7",
    "0002_accounts.sql": "1f63482b62ec44b98e23b8458238425929ddcfe6517a4ec521773860ab0519ef",
    "0003_verbs.sql": "73cc0163af9e4e7f0330db566cbeb70cc27fa1d1e7898a62c31f3e5cd5a6bf53",
    "0004_telegram.sql": "e554580e9a113e8941a2f8f8a9a1171d9065c8d9af94bfb3961284de3774a272",
}


def schema(database: Database) -> list[tuple[str, ...]]:
    with database.read() as connection:
        return [
            tuple(row)
            for row in connection.execute(
                "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY 1, 2"
            )
        ]


def step(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(script, encoding="utf-8")
    return folder


def test_s02_opening_twice_leaves_the_schema_as_it_is(data_dir: Path, now: datetime) -> None:
    first = open_database(data_dir, now)
    before = schema(first)
    first.close()
    second = open_database(data_dir, now.replace(year=2027))
    assert schema(second) == before
    assert applied_steps(second) == [path.name for path in STEPS]
    with second.read() as connection:
        times = {row[0] for row in connection.execute("SELECT applied FROM schema_steps")}
    second.close()
    assert times == {to_text(now)}


def test_s02_an_applied_step_is_never_rewritten() -> None:
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in STEPS}
    assert found == DIGESTS, "change the schema by a new step; a new step adds its digest here"


def test_s02_steps_are_numbered_without_gap_or_twin() -> None:
    assert [int(path.name[:4]) for path in STEPS] == list(range(1, len(STEPS) + 1))


def test_s02_processes_opening_at_once_apply_each_step_once(tmp_path: Path, crew: Crew) -> None:
    for number in range(25):
        data_dir = tmp_path / str(number)
        moment = time.monotonic() + 0.003
        steps = crew.all(chores.open_at, *[(moment, data_dir)] * 4)
        assert steps == [[path.name for path in STEPS]] * 4


def test_s02_a_step_that_fails_leaves_nothing_half_done(
    data_dir: Path, tmp_path: Path, now: datetime
) -> None:
    folder = step(tmp_path / "steps", "0001_first.sql", "CREATE TABLE first(id INTEGER) STRICT;")
    step(
        folder,
        "0002_second.sql",
        "CREATE TABLE second(id INTEGER) STRICT;\nINSERT INTO second VALUES(1);\n"
        "INSERT INTO nowhere VALUES(1);\n",
    )
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        open_database(data_dir, now, folder)
    step(folder, "0002_second.sql", "CREATE TABLE second(id TEXT) STRICT;\n")
    database = open_database(data_dir, now, folder)
    assert applied_steps(database) == ["0001_first.sql", "0002_second.sql"]
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM second").fetchone()[0] == 0
    database.close()


def test_s02_a_script_cut_off_in_a_statement_applies_nothing(
    data_dir: Path, tmp_path: Path, now: datetime
) -> None:
    script = "CREATE TABLE whole(id INTEGER) STRICT;\nCREATE TABLE cut(id INTEGER"
    folder = step(tmp_path / "steps", "0001_cut.sql", script)
    with pytest.raises(ValueError, match="middle of a statement"):
        open_database(data_dir, now, folder)
    raw = sqlite3.connect(data_dir / DATABASE_NAME)
    names = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    raw.close()
    assert names == ["schema_steps"]


def test_s02_a_step_comes_after_those_that_are_applied(
    data_dir: Path, tmp_path: Path, now: datetime
) -> None:
    folder = step(tmp_path / "steps", "0001_a.sql", "CREATE TABLE a(id INTEGER) STRICT;")
    open_database(data_dir, now, folder).close()
    step(folder, "0002_b.sql", "ALTER TABLE a ADD COLUMN more TEXT;")
    database = open_database(data_dir, now, folder)
    assert applied_steps(database) == ["0001_a.sql", "0002_b.sql"]
    database.close()


def test_s02_a_newer_database_is_refused_and_left_alone(data_dir: Path, now: datetime) -> None:
    database = open_database(data_dir, now)
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO schema_steps VALUES('9999_later.sql', :now)", {"now": to_text(now)}
        )
    before = schema(database)
    database.close()
    content = (data_dir / DATABASE_NAME).read_bytes()
    with pytest.raises(AppError) as refused:
        open_database(data_dir, now)
    assert refused.value.code == "database_newer"
    assert "9999_later.sql" in refused.value.detail
    assert (data_dir / DATABASE_NAME).read_bytes() == content
    raw = sqlite3.connect(data_dir / DATABASE_NAME)
    left = raw.execute(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY 1, 2"
    ).fetchall()
    raw.close()
    assert left == before


def test_a_newer_database_gets_none_of_our_missing_steps(
    data_dir: Path, tmp_path: Path, now: datetime
) -> None:
    folder = step(tmp_path / "later", "0002_later.sql", "CREATE TABLE later(id INTEGER) STRICT;")
    open_database(data_dir, now, folder).close()
    with pytest.raises(AppError):
        open_database(data_dir, now)
    raw = sqlite3.connect(data_dir / DATABASE_NAME)
    names = {row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    raw.close()
    assert names == {"schema_steps", "later"}


@pytest.mark.parametrize(
    "content", [b"no database at all" * 400, b"SQLite format 3\x00" + b"x" * 4080]
)
def test_a_damaged_database_says_so_and_is_left_alone(
    data_dir: Path, now: datetime, content: bytes
) -> None:
    data_dir.mkdir()
    (data_dir / DATABASE_NAME).write_bytes(content)
    with pytest.raises(AppError) as refused:
        open_database(data_dir, now)
    assert refused.value.code == "database_damaged"
    assert (data_dir / DATABASE_NAME).read_bytes() == content


def test_a_refused_start_leaves_no_open_file(data_dir: Path, now: datetime) -> None:
    data_dir.mkdir()
    (data_dir / DATABASE_NAME).write_bytes(b"no database at all" * 400)
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(AppError):
        open_database(data_dir, now)
    assert len(set(Path("/proc/self/fd").iterdir()) - before) <= 1  # the listing's own


def test_the_data_directory_is_nobody_elses(data_dir: Path, now: datetime) -> None:
    open_database(data_dir / "deep", now).close()
    assert data_dir.stat().st_mode & 0o077 == 0
    assert (data_dir / "deep").stat().st_mode & 0o077 == 0


def test_a_script_is_split_where_its_statements_end() -> None:
    script = (
        "-- it's a comment; with a semicolon\n"
        "CREATE TABLE a(x TEXT CHECK (x <> ';'));\n\n"
        "CREATE TRIGGER t AFTER INSERT ON a\nBEGIN\n"
        "  UPDATE a SET x = 'y;';\n  UPDATE a SET x = 'z';\nEND;\n"
        "-- the end\n"
    )
    first, second = split(script)
    assert first.endswith("(x TEXT CHECK (x <> ';'));")
    assert second.startswith("CREATE TRIGGER") and second.endswith("END;")


def test_the_ledger_is_the_only_table_outside_the_steps(data_dir: Path, now: datetime) -> None:
    database = open_database(data_dir, now)
    tables = {row[1] for row in schema(database) if row[0] == "table"}
    database.close()
    scripts = "".join(path.read_text(encoding="utf-8") for path in STEPS)
    outside = {name for name in tables if f"CREATE TABLE {name}(" not in scripts}
    assert outside == {"schema_steps", "sqlite_sequence"}
