"""One turn of one queue: its jobs enqueued by one process and drained by another."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from benchmarks.queue import servers
from benchmarks.queue.peers.embedded import Huey, LiteQueue, PersistQueue
from benchmarks.queue.peers.on_postgres import PgQueuer, PgQueuerTen, Procrastinate
from benchmarks.queue.peers.on_redis import RedisStream, Rq
from benchmarks.queue.peers.ours import Ours, Pipeline
from benchmarks.queue.peers.port import STAMPS, Peer, Place
from tests.crew import Crew

PEERS: Sequence[type[Peer]] = (
    Rq,
    Procrastinate,
    Huey,
    LiteQueue,
    PersistQueue,
    PgQueuer,
    PgQueuerTen,
    RedisStream,
)
_BY_NAME = {peer.__name__: peer for peer in (*PEERS, Ours, Pipeline)}
_NUMBERS = count()


@dataclass(frozen=True)
class Rate:
    """Jobs a second: enqueued, completed (claimed and ended), and both one after the other."""

    enqueued: float
    completed: float

    @property
    def whole(self) -> float:
        """Jobs a second from enqueue to end."""
        return 1 / (1 / self.enqueued + 1 / self.completed)


def take(peer: type[Peer], folder: Path, jobs: int) -> Rate:
    """Carry so many jobs through a fresh queue; RuntimeError when not each came through once.

    The clock runs from the first job to the last of each half, so that neither the start of a
    process nor the search for work at the end counts.
    """
    home = folder / f"turn-{next(_NUMBERS)}"
    home.mkdir()
    try:
        with servers.running(peer.server, home) as address, Crew(2) as crew:
            place = Place(home, address)
            peer(place).prepare()
            crew.start(0, enqueue, peer.__name__, place, jobs)
            enqueued = crew.answer(0)
            crew.start(1, drain, peer.__name__, place)
            completed = crew.answer(1)
    finally:
        shutil.rmtree(home)
    if len(completed) != jobs or len({key for key, _ in completed}) != jobs:
        raise RuntimeError(f"{peer.name}: {len(completed)} runs of {jobs} jobs")
    return Rate(_rate(enqueued), _rate(completed))


def enqueue(name: str, place: Place, jobs: int) -> list[tuple[object, float]]:
    """In a process of its own: enqueue, and give the stamps."""
    _BY_NAME[name](place).enqueue(jobs)
    return STAMPS


def drain(name: str, place: Place) -> list[tuple[object, float]]:
    """In a process of its own: work on all there is, and give the stamps."""
    _BY_NAME[name](place).drain()
    return STAMPS


def _rate(stamps: Sequence[tuple[object, float]]) -> float:
    moments = [moment for _, moment in stamps]
    return (len(moments) - 1) / (moments[-1] - moments[0])
