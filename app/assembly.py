"""Everything behind the doors, put together once for the web and the commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app import bell, liveness
from app.clock import utcnow
from app.db import Database
from app.intake import Intake
from app.liveness import Presence
from app.migrate import open_database
from app.owners import Owners
from app.queue.port import Queue
from app.queue.sqlite import SqliteQueue
from app.settings import Settings
from app.storage.local import LocalStorage
from app.storage.port import Storage


@dataclass(frozen=True)
class House:
    """The parts of the service that a process of app works with.

    name is this process's own (app.liveness), scratch its own directory on the storage's disk,
    removed when it ends.
    """

    settings: Settings
    name: str
    database: Database
    queue: Queue
    storage: Storage
    intake: Intake
    owners: Owners
    scratch: Path

    def workers_alive(self) -> int:
        """How many worker processes run on this data directory now."""
        return liveness.workers_alive(self.settings.storage.data_dir)


@contextmanager
def opened(settings: Settings, role: str) -> Iterator[House]:
    """The house, its database migrated, this process known as alive; all closed on leaving.

    role is liveness.WEB, BOT or COMMAND. AppError database_newer or database_damaged.
    """
    data_dir = settings.storage.data_dir
    database = open_database(data_dir, utcnow())
    try:
        presence = Presence(data_dir, role)
        try:
            queue = SqliteQueue(
                database,
                settings.longest_pause_seconds,
                takes_turns=settings.worker.fair_turns,
                on_ready=partial(bell.ring, data_dir),
            )
            storage = LocalStorage(data_dir, presence.scratch)
            intake = Intake(settings, queue, storage)
            owners = Owners(database, settings.panel)
            yield House(
                settings,
                presence.name,
                database,
                queue,
                storage,
                intake,
                owners,
                presence.scratch,
            )
        finally:
            presence.close()
    finally:
        database.close()
