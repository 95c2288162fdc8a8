"""A Python process of ours under limits: started, talked to in JSON lines, killed, reaped.

A child has a session and process group of its own, so that one SIGKILL ends it and all it
started; it inherits no descriptor and no environment; it dies when this process dies.
"""

import codecs
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from worker.work import Stopped

_ROOT = Path(__file__).resolve().parent.parent
_TICK_SECONDS = 0.1
"""How often stopped() and the limits are looked at while nothing comes."""
_EXIT_GRACE_SECONDS = 2.0
"""How long a child that closed its stdout may take to end before it is killed."""
_READ_BYTES = 65536
_LAST_WORDS_BYTES = 4096
_LINE_LIMIT_BYTES = 16 * 1024 * 1024
"""The longest message: far beyond the words of a long piece, far below what hurts."""

# The kernel's death signal follows the parent THREAD, not the process: a child started by a
# thread that ends is killed. So one thread, which lives until the interpreter ends, starts all.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="child-starter")


class Reason(StrEnum):
    """Why a child was of no use."""

    LATE = "late"
    STALLED = "stalled"
    GONE = "gone"


class ChildFailed(Exception):  # noqa: N818 - says what happened, as Stopped does
    """The child took too long, showed no progress or ended; it is already killed and reaped.

    exit_code is negative for a signal. last_words is the end of its stderr, for debugging only:
    it may hold paths, so it goes into no log, error text or message.
    """

    def __init__(self, reason: Reason, exit_code: int, last_words: str) -> None:
        self.reason = reason
        self.exit_code = exit_code
        self.last_words = last_words
        super().__init__(f"child {reason}, exit={exit_code}")


class Child:
    """A running child; use it as a context manager, or call close() in the end."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin and process.stdout and process.stderr  # noqa: S101 - narrows the types
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._selector = selectors.DefaultSelector()
        for pipe in (self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ)
        os.set_blocking(self._stdin.fileno(), False)
        self._pending = bytearray()
        self._last_words = bytearray()
        self._ended = False

    @classmethod
    def start(
        cls,
        module: str,
        arguments: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Start `module.main(channel, arguments)` in a new process (see worker.boot).

        Any thread may call this, and may end before the child does. The child sees only PATH,
        LANG, HOME, PYTHONPATH and what environment adds.
        """
        return cls(_starter.submit(_spawn, module, arguments, environment or {}).result())

    @property
    def pid(self) -> int:
        """The process id, which is the id of its session and group too."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """True while the process runs; asking does not reap it."""
        if self._ended:
            return False
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def send(self, message: Mapping[str, Any], timeout_seconds: float = 10) -> None:
        """Give the child a message; one that does not take it in time is killed: ChildFailed."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        deadline = time.monotonic() + timeout_seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            while data:
                if time.monotonic() > deadline:
                    raise self._fail(Reason.STALLED)
                if selector.select(_TICK_SECONDS):
                    try:
                        data = data[os.write(self._stdin.fileno(), data) :]
                    except BrokenPipeError:
                        raise self._fail(Reason.GONE) from None

    def messages(
        self,
        *,
        timeout_seconds: float,
        stall_seconds: float,
        stopped: Callable[[], bool],
    ) -> Iterator[dict[str, Any]]:
        """The child's messages as they come; leave the loop after the one that ends the talk.

        Raises ChildFailed when the whole takes longer than timeout_seconds, when no message
        comes for stall_seconds, or when the child ends; and Stopped soon after stopped() turns
        True. Whatever is raised, the child's whole group is then killed and reaped.
        """
        deadline = time.monotonic() + timeout_seconds
        heard = looked = time.monotonic()
        while True:
            for message in self._whole_lines():
                heard = time.monotonic()
                yield message
            now = time.monotonic()
            if now - looked >= _TICK_SECONDS:
                looked = now
                if stopped():
                    self.close()
                    raise Stopped
            if now > deadline:
                raise self._fail(Reason.LATE)
            if now - heard > stall_seconds:
                raise self._fail(Reason.STALLED)
            if not self._pump():
                raise self._fail(Reason.GONE, grace=True)

    def close(self) -> int:
        """Kill the child's whole group if it still runs, reap it, and give its exit code."""
        if not self._ended:
            self._ended = True
            # Nothing reaps the leader before this line, so its group id cannot be another's.
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            self._selector.close()
            for pipe in (self._stdin, self._stdout, self._stderr):
                with suppress(OSError):
                    pipe.close()
        return self._process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _pump(self) -> bool:
        """Wait a tick and take in what came; False when the child's stdout is at its end."""
        for key, _ in self._selector.select(_TICK_SECONDS):
            data = os.read(key.fd, _READ_BYTES)
            if key.fileobj is self._stdout:
                if not data:
                    return False
                self._pending += data
                if len(self._pending) > _LINE_LIMIT_BYTES:
                    raise self._fail(Reason.GONE)
            elif data:
                self._last_words += data
                del self._last_words[:-_LAST_WORDS_BYTES]
            else:
                self._selector.unregister(self._stderr)
        return True

    def _whole_lines(self) -> Iterator[dict[str, Any]]:
        while (end := self._pending.find(b"\n")) >= 0:
            line = bytes(self._pending[:end])
            del self._pending[: end + 1]
            try:
                message = json.loads(line)
            except ValueError:
                raise self._fail(Reason.GONE) from None
            yield message

    def _fail(self, reason: Reason, *, grace: bool = False) -> ChildFailed:
        """End the child; with grace, let one that is ending by itself show its own exit code."""
        until = time.monotonic() + (_EXIT_GRACE_SECONDS if grace else 0)
        while self.is_alive and time.monotonic() < until:
            time.sleep(0.01)
        with suppress(OSError):
            self._last_words += os.read(self._stderr.fileno(), _READ_BYTES)
        exit_code = self.close()
        words = codecs.decode(bytes(self._last_words[-_LAST_WORDS_BYTES:]), errors="replace")
        return ChildFailed(reason, exit_code, words)


def _spawn(
    module: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        # -P and -s: nothing is imported from the current folder or from a home directory.
        [sys.executable, "-P", "-s", "-m", "worker.boot", str(os.getpid()), module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        close_fds=True,
        start_new_session=True,
        cwd="/",
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": "/nonexistent",
            "PYTHONPATH": str(_ROOT),
            **environment,
        },
    )
