"""Queues on Redis that syncs its log before each answer (appendfsync always)."""

import logging

import redis
import rq

from benchmarks.queue.peers.port import Peer, note


class Rq(Peer):
    """RQ with the worker that runs jobs in its own process: forking would only slow it down."""

    name = "RQ, Redis appendfsync always"
    server = "redis"

    def enqueue(self, jobs: int) -> None:
        """See Peer."""
        queue = rq.Queue(connection=redis.Redis.from_url(self.place.address))
        for key in range(jobs):
            queue.enqueue(note, key, result_ttl=0)
            note(key)

    def drain(self) -> None:
        """See Peer."""
        logging.disable(logging.WARNING)
        connection = redis.Redis.from_url(self.place.address)
        worker = rq.SimpleWorker([rq.Queue(connection=connection)], connection=connection)
        worker.work(burst=True, logging_level="ERROR")


class RedisStream(Peer):
    """A bare stream with a consumer group: no attempts, no pauses, no ends."""

    name = "Redis streams, bare, appendfsync always"
    server = "redis"

    def prepare(self) -> None:
        """Make the stream and its group."""
        redis.Redis.from_url(self.place.address).xgroup_create("jobs", "all", "0", mkstream=True)

    def enqueue(self, jobs: int) -> None:
        """See Peer."""
        connection = redis.Redis.from_url(self.place.address)
        for key in range(jobs):
            connection.xadd("jobs", {"key": key})
            note(key)

    def drain(self) -> None:
        """See Peer."""
        connection = redis.Redis.from_url(self.place.address)
        while found := connection.xreadgroup("all", "one", {"jobs": ">"}, count=1):
            number, fields = found[0][1][0]
            connection.xack("jobs", "all", number)
            note(fields[b"key"])
