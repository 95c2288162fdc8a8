"""What a queue of this comparison must do, and the job that all of them carry."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

STAMPS: list[tuple[object, float]] = []
"""The key of each job that came through in this process, and when."""


def note(key: object) -> None:
    """The job itself, a name that any worker can import: it notes that it was run."""
    STAMPS.append((key, time.perf_counter()))


@dataclass(frozen=True)
class Place:
    """Where a queue keeps its things: a folder, and the address of its server if it has one."""

    folder: Path
    address: str = ""


class Peer:
    """A queue under measurement; enqueue() and drain() run in processes of their own.

    name is what the table says; survives is what an accepted job outlives; server is what must
    run for it. note() is called with the key of each job right after it was enqueued, and again
    when it was worked on.
    """

    name: ClassVar[str]
    survives: ClassVar[str] = "power cut"
    server: ClassVar[str] = ""

    def __init__(self, place: Place) -> None:
        self.place = place

    def prepare(self) -> None:
        """Make the tables or whatever the queue needs before its first job."""

    def enqueue(self, jobs: int) -> None:
        """Enqueue jobs with the keys 0, 1, 2 ..., one call each."""
        raise NotImplementedError

    def drain(self) -> None:
        """Claim and complete one job after another until none is left."""
        raise NotImplementedError
