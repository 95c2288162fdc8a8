"""Applies the numbered steps of migrations/sqlite when the store is opened (S02)."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from app import folders
from app.clock import to_text
from app.db import Connection, Database, complete_statement
from app.errors import AppError
from app.resources import MIGRATIONS

DATABASE_NAME = "pisar.db"

_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_steps(
  name TEXT PRIMARY KEY NOT NULL,
  applied TEXT NOT NULL CHECK (
    applied GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] '
      || '[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  )
) STRICT
"""


def open_database(data_dir: Path, now: datetime, folder: Path = MIGRATIONS / "sqlite") -> Database:
    """The store of a data directory, its schema brought up to date.

    Two processes that open at once apply each step once: the steps run one transaction each,
    under the writer lock. A database with a step this code does not know is AppError
    database_newer, and nothing is changed.
    """
    # Recordings and texts are nobody else's on this machine.
    folders.make(data_dir, mode=0o700)
    database = Database(data_dir / DATABASE_NAME)
    try:
        _migrate(database, sorted(folder.glob("[0-9]*.sql")), now)
    except BaseException:
        database.close()
        raise
    return database


def applied_steps(database: Database) -> Sequence[str]:
    """The names of the applied steps, in order."""
    with database.read() as connection:
        return [row[0] for row in connection.execute("SELECT name FROM schema_steps ORDER BY name")]


def _migrate(database: Database, steps: Sequence[Path], now: datetime) -> None:
    with database.transaction() as connection:
        connection.execute(_LEDGER)
        applied = _names(connection)
    unknown = applied - {step.name for step in steps}
    if unknown:
        raise AppError("database_newer", f"unknown step {min(unknown)}")
    for step in steps:
        if step.name not in applied:
            _apply(database, step, now)


def _apply(database: Database, step: Path, now: datetime) -> None:
    with database.transaction() as connection:
        if step.name in _names(connection):
            return
        for statement in split(step.read_text(encoding="utf-8")):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO schema_steps(name, applied) VALUES(:name, :applied)",
            {"name": step.name, "applied": to_text(now)},
        )


def split(script: str) -> Sequence[str]:
    """The single statements of a script; executescript() would commit the transaction it is in."""
    found, part = [], ""
    for line in script.splitlines(keepends=True):
        part += line
        if complete_statement(part):
            found.append(part.strip())
            part = ""
    if "".join(line for line in part.splitlines() if not line.startswith("--")).strip():
        raise ValueError("the script ends in the middle of a statement")
    return found


def _names(connection: Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM schema_steps")}
