"""Queues in a SQLite file of their own."""

import huey
import litequeue
import persistqueue

from benchmarks.queue.peers.port import Peer, note


class Huey(Peer):
    """Huey on SQLite: taking a job deletes its row, so one commit less, and a kill loses it."""

    name = "Huey, SqliteHuey"
    survives = "power cut; lost when its worker is killed"

    def prepare(self) -> None:
        """Make the schema."""
        self._open()

    def enqueue(self, jobs: int) -> None:
        """See Peer."""
        task = self._open().task()(note)
        for key in range(jobs):
            task(key)
            note(key)

    def drain(self) -> None:
        """See Peer."""
        queue = self._open()
        queue.task()(note)
        while job := queue.dequeue():
            queue.execute(job)

    def _open(self) -> huey.SqliteHuey:
        return huey.SqliteHuey(filename=str(self.place.folder / "huey.db"), results=False)


class LiteQueue(Peer):
    """litequeue: WAL at synchronous NORMAL, so an accepted job may be gone after a power cut."""

    name = "litequeue"
    survives = "process crash"

    def prepare(self) -> None:
        """Make the schema."""
        self._open()

    def enqueue(self, jobs: int) -> None:
        """See Peer."""
        queue = self._open()
        for key in range(jobs):
            queue.put(str(key))
            note(key)

    def drain(self) -> None:
        """See Peer."""
        queue = self._open()
        while message := queue.pop():
            queue.done(message.message_id)
            note(message.data)

    def _open(self) -> litequeue.LiteQueue:
        return litequeue.LiteQueue(str(self.place.folder / "lite.db"))


class PersistQueue(Peer):
    """persist-queue with acknowledgements: each opening hands out what live workers hold."""

    name = "persist-queue, SQLiteAckQueue"

    def prepare(self) -> None:
        """Make the schema."""
        self._open()

    def enqueue(self, jobs: int) -> None:
        """See Peer."""
        queue = self._open()
        for key in range(jobs):
            queue.put(key)
            note(key)

    def drain(self) -> None:
        """See Peer."""
        queue = self._open()
        while True:
            try:
                item = queue.get(block=False, raw=True)
            except persistqueue.Empty:
                return
            queue.ack(item)
            note(item["data"])

    def _open(self) -> persistqueue.SQLiteAckQueue:
        return persistqueue.SQLiteAckQueue(str(self.place.folder / "ack"), multithreading=True)
