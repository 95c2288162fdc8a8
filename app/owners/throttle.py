"""Slows down guessing: by the name tried and by the address it comes from, across restarts."""

import ipaddress
import math
from collections.abc import Mapping
from datetime import datetime

from app.clock import from_text, later, to_text
from app.db import Connection
from app.errors import AppError
from app.owners.secrets import digest

FREE_TRIES = 5
LONGEST_PAUSE_SECONDS = 300
FORGET_AFTER_SECONDS = 86400


class TooManyTriesError(AppError):
    """too_many_tries, with how long to wait."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__("too_many_tries")
        self.retry_after_seconds = retry_after_seconds


class Throttle:
    """Counts tries inside the caller's transaction."""

    def __init__(self, sql: Mapping[str, str]) -> None:
        self._sql = sql

    def count(self, connection: Connection, subjects: list[str], now: datetime) -> None:
        """Note a try of each subject before it is judged, or raise TooManyTriesError.

        Counting first means that a hundred tries at once cannot all pass before one has failed.
        A refused try is not counted: a person who keeps pressing the button still gets in.
        """
        rows = {subject: self._known(connection, subject, now) for subject in subjects}
        wait = max((until - now).total_seconds() for _, until in rows.values())
        if wait > 0:
            raise TooManyTriesError(math.ceil(wait))
        for subject, (failures, _) in rows.items():
            pause = pause_seconds(failures + 1)
            connection.execute(
                self._sql["count_try"],
                {
                    "subject": subject,
                    "failures": failures + 1,
                    "now": to_text(now),
                    "blocked_until": to_text(later(now, pause)),
                },
            )

    def forget(self, connection: Connection, subjects: list[str], now: datetime) -> None:
        """Clear the record of these subjects, and what is older than a day of all others."""
        for subject in subjects:
            connection.execute(self._sql["forget_tries"], {"subject": subject})
        long_ago = to_text(later(now, -FORGET_AFTER_SECONDS))
        connection.execute(self._sql["forget_old_tries"], {"long_ago": long_ago})

    def _known(self, connection: Connection, subject: str, now: datetime) -> tuple[int, datetime]:
        row = connection.execute(self._sql["tries"], {"subject": subject}).fetchone()
        if row is None:
            return 0, now
        tried, until = from_text(row["tried"]), from_text(row["blocked_until"])
        # A clock that was set back must not lock the owner out for as long as it went back.
        if tried > now or (now - tried).total_seconds() > FORGET_AFTER_SECONDS:
            return (row["failures"] if tried > now else 0), now
        return row["failures"], until


def pause_seconds(failures: int) -> int:
    """How long the next try waits after that many failures: 0 five times, then 2, 4, 8 ... 300."""
    if failures < FREE_TRIES:
        return 0
    return int(min(2 ** min(failures - FREE_TRIES + 1, 62), LONGEST_PAUSE_SECONDS))


def subjects_of(name_key: str, address: str) -> list[str]:
    """The stored subjects of a try; an IPv6 address stands for its /64, which one person has."""
    return [digest(f"name:{name_key}"), digest(f"address:{_network(address)}")]


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
