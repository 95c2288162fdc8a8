"""Processes of the service that this one starts: none of them outlives it.

Each has a session of its own, so that Ctrl-C in the terminal reaches only the process in front,
and the kernel ends it when this one is gone, even by SIGKILL.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from app.settings import Settings, child_environment

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
EXIT_BAD_SETTINGS = 78
"""EX_CONFIG of sysexits.h: trying again cannot help, somebody must change the settings."""

_PR_SET_PDEATHSIG = 1
_TICK_SECONDS = 0.05

# Loaded before any fork: between fork and exec nothing may be imported or allocated in earnest.
_libc = ctypes.CDLL(None)

Process = subprocess.Popen[bytes]


def web_command() -> Sequence[str]:
    """The command line of the web process."""
    return _python("app", "web")


def worker_command() -> Sequence[str]:
    """The command line of the worker process, which is how app starts what it never imports."""
    return _python("worker")


def bot_command() -> Sequence[str]:
    """The command line of the bot's process."""
    return _python("app", "bot")


def checkup_command() -> Sequence[str]:
    """The command line that tells, as JSON lines, how the worker's side fares."""
    return _python("worker.checkup")


def start(
    command: Sequence[str], settings: Settings, overrides: Mapping[str, str] | None = None
) -> Process:
    """Start a process of the service; call it from the main thread of a process without others.

    The kernel ties the child's life to the thread that starts it, and the code that runs between
    fork and exec is not safe beside other threads. overrides are settings of the child's own, in
    the form of the environment.
    """
    parent = os.getpid()
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env={**child_environment(settings), **(overrides or {})},
        start_new_session=True,
        preexec_fn=lambda: _tie_to(parent),
    )


def stop_signals() -> int:
    """A descriptor that becomes readable at SIGTERM or SIGINT of this process.

    A handler that set an Event could stop for ever on the Event's own lock, which the
    interrupted main thread may be holding.
    """
    reader, writer = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(writer, b"!"))
    return reader


def stop(
    processes: Iterable[Process], timeout_seconds: float, hasten: Callable[[], bool]
) -> Sequence[Process]:
    """Ask the processes to end, then kill the groups of those that do not; gives the killed ones.

    hasten() turning True ends the wait at once.
    """
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + timeout_seconds
    while _any_runs(running) and time.monotonic() < deadline and not hasten():
        time.sleep(_TICK_SECONDS)
    stubborn = [process for process in running if process.poll() is None]
    for process in stubborn:
        # Not reaped yet, so its group id cannot have become another's.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return stubborn


def _python(*words: str) -> Sequence[str]:
    # -P: a file `worker.py` in the folder one happens to stand in must not be taken for ours.
    return (sys.executable, "-P", "-m", *words)


def _any_runs(processes: Iterable[Process]) -> bool:
    return any(process.poll() is None for process in processes)


def _tie_to(parent: int) -> None:
    """Run in the child before exec: SIGTERM it when the parent is gone, and unblock signals.

    SIGTERM, not SIGKILL: the worker gives its claims back, and ends itself at the hard timeout.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.getppid() != parent:
        os._exit(EXIT_FAILED)
