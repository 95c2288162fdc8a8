"""Fills a store with as many jobs as a depth asks for, fast: by SQL, the triggers keeping count.

The job rows are what the verbs would have left: random ids, turns in the order of acceptance, all
indexes. Left out is what neither claim nor list reads: the timelines, and a file row for each job
(they share one).
"""

import sqlite3
from datetime import datetime
from pathlib import Path

from app.clock import to_text
from app.db import Database
from app.migrate import open_database

_SENTENCE = "The quick brown fox jumps over the lazy dog. "
_FILE = """
INSERT INTO files(id, file, location, size, media_type, created, updated)
VALUES('sharedbyalljobs', 'shared.ogg', 'local', 1000, 'audio/ogg', :now, :now)
"""
_JOBS = """
WITH RECURSIVE numbers(n) AS (VALUES(:first) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :end)
INSERT INTO transcribe_jobs(
  id, state, source, display_name, language, source_file, file, sender, turn, delay_time,
  created, updated)
SELECT lower(hex(randomblob(7))) || 'j', :state, 'api', 'A talk.ogg', 'en',
  'sharedbyalljobs', 'sharedbyalljobs', 'anonymous', n,
  iif(n % 100 < :delayed_in_100, :due, NULL), :now, :now
FROM numbers
WHERE n < :end
"""
_TEXTS = """
INSERT INTO transcripts(job, transcription_text, segments, created, updated)
SELECT id, :text, '[]', :now, :now
FROM transcribe_jobs
"""


class Filled:
    """A store being filled, with a large cache and without waiting for the disk."""

    def __init__(self, data_dir: Path, now: datetime) -> None:
        self._data_dir = data_dir
        self._now = now

    def __enter__(self) -> "Filled":
        database = open_database(self._data_dir, self._now)
        database.close()
        self._connection = sqlite3.connect(database.path, isolation_level=None)
        for pragma in ("synchronous=OFF", "cache_size=-400000"):
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        self._connection.execute("BEGIN")
        self._connection.execute(_FILE, {"now": to_text(self._now)})
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.execute("COMMIT")
        self._connection.close()

    def add(
        self, state: str, jobs: int, *, delayed_in_100: int = 0, due: datetime | None = None
    ) -> None:
        """So many more jobs in a state, some in 100 of them in a pause that ends when due."""
        values = {
            "state": state,
            "now": to_text(self._now),
            "delayed_in_100": delayed_in_100,
            "due": due and to_text(due),
        }
        # The rows are of one form: the first is checked for all, which saves half of the time.
        for first, end in ((0, 1), (1, jobs)):
            self._connection.execute(_JOBS, values | {"first": first, "end": end})
            self._connection.execute("PRAGMA ignore_check_constraints = ON")
        self._connection.execute("PRAGMA ignore_check_constraints = OFF")

    def write_texts(self, length: int) -> None:
        """A text of so many characters for each job; one that waits was revived and kept it."""
        text = (_SENTENCE * (length // len(_SENTENCE) + 1))[:length]
        self._connection.execute(_TEXTS, {"text": text, "now": to_text(self._now)})

    def opened(self) -> Database:
        """The filled store, as the service opens it."""
        return open_database(self._data_dir, self._now)
