"""`pisar up`: the service's processes under one parent that starts, watches and stops them."""

import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app import process
from app.settings import Settings

log = logging.getLogger(__name__)

PAUSE_CAP_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A process that ran this long was well: its next pause begins at 1 s again."""

_READY_TICK_SECONDS = 0.1
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WATCHED = (*_STOPPING, signal.SIGCHLD)


@dataclass
class _Role:
    """A process to keep running: its command line, and how it fares."""

    name: str
    command: Sequence[str]
    running: process.Process | None = None
    started: float = 0.0
    failures: int = 0
    due: float = 0.0

    def start(self, settings: Settings) -> None:
        self.running = process.start(self.command, settings)
        self.started = time.monotonic()
        log.info("started", extra={"child": self.name, "pid": self.running.pid})

    def take_exit_code(self) -> int | None:
        """The exit code of a process that has just ended; then its next start is set."""
        if self.running is None or (code := self.running.poll()) is None:
            return None
        self.running = None
        now = time.monotonic()
        self.failures = 1 if now - self.started > STEADY_SECONDS else self.failures + 1
        self.due = now + restart_pause_seconds(self.failures)
        return code


def restart_pause_seconds(failures: int) -> float:
    """Seconds before a process that ended is started again: 1, 2, 4 ... up to 30."""
    # 2**5 is beyond the cap already; a larger power would only cost time.
    return min(2.0 ** min(failures - 1, 5), PAUSE_CAP_SECONDS)


class Supervisor:
    """Keeps one process of each role running until it is told to stop; Linux only."""

    def __init__(self, settings: Settings, commands: Mapping[str, Sequence[str]]) -> None:
        self._settings = settings
        self._roles = [_Role(name, command) for name, command in commands.items()]

    def run(self, is_ready: Callable[[], bool], announce: Callable[[], None]) -> int:
        """Start all, watch them until SIGTERM, SIGINT or SIGHUP, stop all; gives the exit code.

        announce() is called once, when is_ready() first says so. A process that ends with 78
        stops everything with 78: its settings are wrong, and starting it again would not help.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        try:
            for role in self._roles:
                role.start(self._settings)
            return self._watch(is_ready, announce)
        finally:
            self._stop()

    def _watch(self, is_ready: Callable[[], bool], announce: Callable[[], None]) -> int:
        announced = False
        while True:
            if not announced and is_ready():
                announce()
                announced = True
            happened = _wait_for_signal(self._wait_seconds(announced))
            if happened in _STOPPING:
                log.info("stopping", extra={"signal": signal.Signals(happened).name})
                return 0
            for role in self._roles:
                if self._tend(role) == process.EXIT_BAD_SETTINGS:
                    return process.EXIT_BAD_SETTINGS

    def _tend(self, role: _Role) -> int | None:
        """Note that a process has ended, or start it again when its pause is over."""
        code = role.take_exit_code()
        if code == process.EXIT_BAD_SETTINGS:
            log.error("its settings are wrong, so all stop", extra={"child": role.name})
        elif code is not None:
            pause = restart_pause_seconds(role.failures)
            log.error(
                "a process ended and will be started again",
                extra={"child": role.name, "exit_code": code, "pause_seconds": pause},
            )
        elif role.running is None and time.monotonic() >= role.due:
            role.start(self._settings)
        return code

    def _wait_seconds(self, announced: bool) -> float | None:
        """How long to sleep for want of a signal; None: until one comes."""
        waits = [] if announced else [_READY_TICK_SECONDS]
        now = time.monotonic()
        waits += [max(0.0, role.due - now) for role in self._roles if role.running is None]
        return min(waits, default=None)

    def _stop(self) -> None:
        running = [role.running for role in self._roles if role.running]
        killed = process.stop(
            running,
            self._settings.server.force_shutdown_timeout,
            hasten=lambda: _wait_for_signal(0) in _STOPPING,
        )
        for role in self._roles:
            if role.running in killed:
                log.warning("killed: it did not stop in time", extra={"child": role.name})
        log.info("stopped")


def _wait_for_signal(seconds: float | None) -> int | None:
    """The next watched signal, or None when none came in time."""
    if seconds is None:
        return signal.sigwaitinfo(_WATCHED).si_signo
    happened = signal.sigtimedwait(_WATCHED, seconds)
    return happened.si_signo if happened else None
