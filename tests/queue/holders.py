"""A worker that claims a job and is then killed: the chore of another process."""

from pathlib import Path

from app.job import State
from app.liveness import Presence
from app.migrate import open_database
from app.queue.port import Claim
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import START, held

_KEPT: list[object] = []


def hold(data_dir: Path, state: State) -> Claim:
    """Claim the job of a state and keep it until killed."""
    presence = Presence(data_dir, "worker")
    database = open_database(data_dir, START)
    _KEPT.extend((presence, database))
    return held(SqliteQueue(database), state, worker=presence.name)
