"""A crew of real processes that run functions of the tests by name, all at the same moment."""

import pickle
import signal
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

ROOT = Path(__file__).resolve().parent.parent


class Crew:
    """Processes that wait for work; leaving the `with` block ends them."""

    def __init__(self, size: int) -> None:
        self._members = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.crew"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for _ in range(size)
        ]

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in self._members:
            member.kill()
            member.communicate()

    def all(self, chore: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Run a chore in as many members as there are argument lists; their answers in order."""
        for number, given in enumerate(arguments):
            self.start(number, chore, *given)
        answers = [_receive(_pipe(member.stdout)) for member in self._members[: len(arguments)]]
        faults = [answer for ok, answer in answers if not ok]
        assert not faults, "\n".join(faults)
        return [answer for _, answer in answers]

    def start(self, number: int, chore: Callable[..., Any], *given: Any) -> None:
        """Have one member begin a chore, and do not wait for it."""
        _send(_pipe(self._members[number].stdin), (chore.__module__, chore.__qualname__, given))

    def answer(self, number: int) -> Any:
        """What a started chore came to."""
        ok, answer = _receive(_pipe(self._members[number].stdout))
        assert ok, answer
        return answer

    def signal(self, number: int, what: signal.Signals) -> None:
        """Send a member a signal."""
        self._members[number].send_signal(what)

    def kill(self, number: int) -> None:
        """End a member as a power cut would, and wait until it is gone."""
        self._members[number].send_signal(signal.SIGKILL)
        self._members[number].wait()


def _pipe(stream: Any) -> BinaryIO:
    assert stream is not None
    found: BinaryIO = stream
    return found


def _send(stream: BinaryIO, message: Any) -> None:
    data = pickle.dumps(message)
    stream.write(struct.pack("<I", len(data)) + data)
    stream.flush()


def _receive(stream: BinaryIO) -> Any:
    size = stream.read(4)
    if len(size) < 4:
        raise EOFError("the process has ended")
    return pickle.loads(stream.read(struct.unpack("<I", size)[0]))  # noqa: S301 - our own process


def _work() -> None:
    while True:
        try:
            module, name, given = _receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = True, getattr(import_module(module), name)(*given)
        except BaseException:
            answer = False, traceback.format_exc()
        _send(sys.stdout.buffer, answer)


if __name__ == "__main__":
    _work()
