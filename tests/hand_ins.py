"""Handing recordings in from other processes: chores that need the whole intake."""

import signal
from pathlib import Path

from app.intake import Intake
from app.job import Source
from app.liveness import Presence
from app.migrate import open_database
from app.queue.sqlite import SqliteQueue
from app.settings import Settings
from app.storage.local import LocalStorage
from tests.chores import NOW, start_together


def hand_in(
    moment: float, data_dir: Path, data: bytes, key: str | None, reuse: bool, times: int = 1
) -> list[tuple[str, bool]]:
    """Hand the same bytes in; gives each job's id and whether it was made for this."""
    database = open_database(data_dir, NOW)
    presence = Presence(data_dir, "web")
    storage = LocalStorage(data_dir, presence.scratch)
    intake = Intake(Settings(), SqliteQueue(database), storage)
    answers = []
    try:
        start_together(moment)
        for _ in range(times):
            draft = intake.draft()
            draft.write(data)
            taken = intake.accept(
                draft,
                source=Source.API,
                display_name="talk.ogg",
                language=None,
                sender="token:one",
                idempotency_key=key,
                reuse_same_bytes=reuse,
                now=NOW,
            )
            answers.append((taken.job.id, taken.created))
    finally:
        presence.close()
        database.close()
    return answers


def hand_in_and_wait(data_dir: Path, data: bytes, key: str, told: Path) -> None:
    """Hand in, and be killed between the commit and the answer."""
    hand_in(0, data_dir, data, key, False)
    told.touch()
    signal.pause()
