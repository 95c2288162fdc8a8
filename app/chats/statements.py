"""The statements of chats.sql, and how they are run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.db import Connection, Row, statements

SQL: Mapping[str, str] = statements(Path(__file__).with_name("chats.sql"))


def rows(connection: Connection, name: str, values: Mapping[str, Any]) -> list[Row]:
    """What a statement gives, read to the end: an unread RETURNING forbids the COMMIT."""
    return connection.execute(SQL[name], values).fetchall()


def row(connection: Connection, name: str, values: Mapping[str, Any]) -> Row | None:
    """The first row that a statement gives, or None."""
    found = rows(connection, name, values)
    return found[0] if found else None


def changed(connection: Connection, name: str, values: Mapping[str, Any]) -> bool:
    """Run a write; False when there was nothing to change."""
    return connection.execute(SQL[name], values).rowcount > 0
