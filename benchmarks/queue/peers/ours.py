"""Pisar's own queue, as the service uses it."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.clock import utcnow
from app.errors import AppError
from app.job import State
from app.migrate import open_database
from app.queue.port import Claim
from app.queue.sqlite import SqliteQueue
from benchmarks.queue.peers.port import Peer, note
from tests.queue.hands import RESULTS, claim, hand_in, held


class Ours(Peer):
    """A job of one step: enqueued, claimed, and ended by the step's verdict. Three commits.

    Each writes its line of the job's timeline as well.
    """

    name = "Pisar, one step"

    def prepare(self) -> None:
        """Make the schema."""
        open_database(self.place.folder, utcnow()).close()

    def enqueue(self, jobs: int) -> None:
        """See Peer."""
        with self._queue() as queue:
            for key in range(jobs):
                hand_in(queue, utcnow())
                note(key)

    def drain(self) -> None:
        """See Peer."""
        verdict = AppError("too_long")
        with self._queue() as queue:
            while isinstance(taken := claim(queue, now=utcnow()), Claim):
                queue.fail(taken, verdict, utcnow())
                note(taken.job.seq)

    @contextmanager
    def _queue(self) -> Iterator[SqliteQueue]:
        database = open_database(self.place.folder, utcnow())
        try:
            yield SqliteQueue(database)
        finally:
            database.close()


class Pipeline(Ours):
    """A job as the service has it: convert, recognize, check, its text stored. Seven commits."""

    name = "Pisar, the whole pipeline of three steps"

    def drain(self) -> None:
        """See Peer."""
        with self._queue() as queue:
            while isinstance(taken := claim(queue, now=utcnow()), Claim):
                queue.finish(taken, RESULTS[State.CREATED](), utcnow())
                for state in (State.CONVERTED, State.TRANSCRIBE):
                    queue.finish(held(queue, state, utcnow()), RESULTS[state](), utcnow())
                note(taken.job.seq)
