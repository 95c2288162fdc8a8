"""Queues on PostgreSQL, whose commits are synced by default."""

import asyncio
import logging
from datetime import timedelta
from typing import ClassVar

import asyncpg
import procrastinate
from pgqueuer.db import AsyncpgDriver
from pgqueuer.domain.types import QueueExecutionMode
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from benchmarks.queue.peers.port import Peer, note


class Procrastinate(Peer):
    """procrastinate: the job of a killed worker stays `doing` until a task of yours retries it."""

    name = "procrastinate"
    server = "postgres"

    def prepare(self) -> None:
        """Make the schema."""
        asyncio.run(self._prepare())

    def enqueue(self, jobs: int) -> None:
        """See Peer."""
        asyncio.run(self._enqueue(jobs))

    def drain(self) -> None:
        """See Peer."""
        logging.disable(logging.WARNING)
        asyncio.run(self._drain())

    async def _prepare(self) -> None:
        async with self._app().open_async() as app:
            await app.schema_manager.apply_schema_async()

    async def _enqueue(self, jobs: int) -> None:
        async with self._app().open_async() as app:
            task = app.tasks["note"]
            for key in range(jobs):
                await task.defer_async(key=key)
                note(key)

    async def _drain(self) -> None:
        async with self._app().open_async() as app:
            await app.run_worker_async(
                wait=False, install_signal_handlers=False, listen_notify=False
            )

    def _app(self) -> procrastinate.App:
        connector = procrastinate.PsycopgConnector(conninfo=self.place.address)
        app = procrastinate.App(connector=connector)

        @app.task(name="note")
        async def run(key: int) -> None:
            note(key)

        return app


class PgQueuer(Peer):
    """pgqueuer, one job a fetch."""

    name = "pgqueuer, batch 1"
    server = "postgres"
    batch: ClassVar[int] = 1

    def prepare(self) -> None:
        """Make the schema."""
        asyncio.run(self._prepare())

    def enqueue(self, jobs: int) -> None:
        """See Peer."""
        asyncio.run(self._enqueue(jobs))

    def drain(self) -> None:
        """See Peer."""
        logging.disable(logging.WARNING)
        asyncio.run(self._drain())

    async def _prepare(self) -> None:
        await (await self._queries()).install()

    async def _enqueue(self, jobs: int) -> None:
        queries = await self._queries()
        for key in range(jobs):
            await queries.enqueue("note", str(key).encode())
            note(key)

    async def _drain(self) -> None:
        manager = QueueManager(await self._queries())

        @manager.entrypoint("note")
        async def run(job: object) -> None:
            note(job.payload)  # type: ignore[attr-defined]

        await manager.run(
            mode=QueueExecutionMode.drain,
            batch_size=self.batch,
            dequeue_timeout=timedelta(seconds=1),
        )

    async def _queries(self) -> Queries:
        return Queries(AsyncpgDriver(await asyncpg.connect(self.place.address)))


class PgQueuerTen(PgQueuer):
    """pgqueuer, ten jobs a fetch and a commit."""

    name = "pgqueuer, batch 10"
    batch = 10
