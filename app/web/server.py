"""The web process: waitress around the app, from its start to its orderly end."""

import logging
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from flask import Flask
from waitress import wasyncore
from waitress.server import TcpWSGIServer, create_server
from waitress.task import ThreadedTaskDispatcher

from app import assembly, liveness, metrics
from app.assembly import House
from app.chats import Links
from app.clock import utcnow
from app.settings import Settings
from app.web import http_metrics
from app.web.channel import teach
from app.web.factory import create_app
from app.web.gate import SMALL_BODY_BYTES, Gate
from app.web.services import Services

log = logging.getLogger(__name__)

EXIT_FAILED = 1
_RECV_BYTES = 256 * 1024
"""Waitress reads 8 KiB at a time by default, at nearly twice the CPU for a large upload."""

_CONNECTIONS = 500
_CLEANUP_SECONDS = 30
_TICK_SECONDS = 0.1
_LOOP_SECONDS = 1.0


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; gives the exit code.

    Running requests have server.shutdown_timeout to end, new ones are not taken.
    """
    with assembly.opened(settings, liveness.WEB) as house:
        liveness.sweep(settings.storage.data_dir)
        # Bodies larger than memory wait on the storage's disk: /tmp may be small, or memory itself.
        tempfile.tempdir = str(house.scratch)
        app = create_app(_services(house))
        http_metrics.install(app, metrics.registry)
        try:
            web = Web(app, settings, Gate(settings, house.owners, Links(house.database), utcnow))
        except OSError as error:
            log.error(
                "the web cannot listen on %s port %d: %s; set server.port to a free one",
                settings.server.host,
                settings.server.port,
                error.strerror,
            )
            return EXIT_FAILED
        metrics.watch(house.queue)
        metrics.queue_wal_bytes.set_function(house.database.wal_bytes)
        metrics.intake_up.labels(intake="http").set(1)
        metrics.serve(settings.server.metrics_port, "server.metrics_port")
        with _signals(web.stop):
            log.info("serving", extra={"host": settings.server.host, "port": settings.server.port})
            web.run()
        log.info("stopped")
    return 0


class Web:
    """The server: its port is taken when it is made, and answers once it runs.

    In between, the signal handlers are set: who can reach the server can also stop it in order.
    """

    def __init__(self, app: Flask, settings: Settings, gate: Gate) -> None:
        self._map: dict[int, Any] = {}
        self._timeout_seconds = settings.server.shutdown_timeout
        self._stopping = False
        self._dispatcher = ThreadedTaskDispatcher()
        create_server(
            app,
            map=self._map,
            _dispatcher=self._dispatcher,
            _start=False,
            **_adjustments(settings),
        )
        for server in self._servers():
            teach(server, gate)
        self._dispatcher.set_thread_count(settings.server.threads)

    def run(self) -> None:
        """Serve until stop() was called and the requests in hand have ended."""
        for server in self._servers():
            server.accept_connections()
        while not self._stopping:
            self._turn(_LOOP_SECONDS)
        for server in self._servers():
            server.accepting = False
            server.socket.close()
        deadline = time.monotonic() + self._timeout_seconds
        while self._is_busy() and time.monotonic() < deadline:
            self._turn(_TICK_SECONDS)
        left = max(0.0, deadline - time.monotonic())
        self._dispatcher.shutdown(timeout=left)
        wasyncore.close_all(self._map, ignore_all=True)

    def stop(self) -> None:
        """Begin the end; may be called by a signal handler or another thread."""
        self._stopping = True
        for server in self._servers():
            server.pull_trigger()

    def _turn(self, seconds: float) -> None:
        wasyncore.loop(timeout=seconds, use_poll=True, map=self._map, count=1)

    def _servers(self) -> Sequence[TcpWSGIServer]:
        return [part for part in list(self._map.values()) if isinstance(part, TcpWSGIServer)]

    def _is_busy(self) -> bool:
        """True while an answer is being made or sent, or a request is half received."""
        channels = [part for server in self._servers() for part in server.active_channels.values()]
        return any(
            channel.requests or channel.total_outbufs_len or channel.request for channel in channels
        )


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT ask for an orderly end; the handlers before come back afterwards."""

    def ask(number: int, frame: FrameType | None) -> None:
        stop()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _adjustments(settings: Settings) -> dict[str, Any]:
    server = settings.server
    proxy = {
        "trusted_proxy": server.trusted_proxy,
        "trusted_proxy_count": 1,
        "trusted_proxy_headers": {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"},
    }
    return {
        "host": server.host,
        "port": server.port,
        "threads": server.threads,
        "recv_bytes": _RECV_BYTES,
        # Every small body stays in memory; a recording spills to the disk beyond this.
        "inbuf_overflow": SMALL_BODY_BYTES + 1,
        "channel_timeout": server.idle_timeout,
        "cleanup_interval": min(_CLEANUP_SECONDS, server.idle_timeout),
        "connection_limit": _CONNECTIONS,
        "asyncore_use_poll": True,
        "clear_untrusted_proxy_headers": True,
        "ident": "pisar",
        **(proxy if server.trusted_proxy else {}),
    }


def _services(house: House) -> Services:
    return Services(
        settings=house.settings,
        database=house.database,
        queue=house.queue,
        storage=house.storage,
        intake=house.intake,
        owners=house.owners,
        workers_alive=house.workers_alive,
    )
