"""What a child process of the worker does first: tie its life to the parent's, guard its stdout.

Started as `python -m worker.boot PARENT_PID MODULE [ARGUMENT…]` by worker.child; the module's
`main(channel, arguments)` is the child. This module stays light: it delays every child.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

_PR_SET_PDEATHSIG = 1


class Channel:
    """The child's end of the talk: JSON lines in on stdin, JSON lines out on the real stdout."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def say(self, message: dict[str, Any]) -> None:
        """Send one message to the parent."""
        self._outgoing.write(json.dumps(message).encode() + b"\n")
        self._outgoing.flush()

    def messages(self) -> Iterator[dict[str, Any]]:
        """The parent's messages, until it closes the pipe."""
        for line in self._incoming:
            yield json.loads(line)


def main() -> int:
    """Run the child module that the command line names; gives its exit code."""
    parent_pid, module, *arguments = sys.argv[1:]
    die_with_parent(int(parent_pid))
    channel = _take_stdout()
    return int(importlib.import_module(module).main(channel, arguments) or 0)


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process with SIGKILL when the thread that started it ends.

    A parent that died before the request took effect shows as a changed parent: then this
    process ends at once. Where the system has no such request (not Linux), only that is checked.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def _take_stdout() -> Channel:
    """A library that prints would break the lines: whatever writes to stdout goes to stderr."""
    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return Channel(sys.stdin.buffer, outgoing)


if __name__ == "__main__":
    sys.exit(main())
