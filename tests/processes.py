"""What tests ask of the kernel about processes, without reaping or disturbing any."""

import os
import time
from collections.abc import Callable
from pathlib import Path


def is_running(pid: int) -> bool:
    """A zombie counts as ended: whoever adopted it has only not looked yet."""
    return _state_and_parent(pid)[0] not in ("Z", "")


def children_of(pid: int | None = None) -> set[int]:
    """The children of a process (this one if not said), zombies included."""
    parent = str(pid or os.getpid())
    found = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {child for child in found if _state_and_parent(child)[1] == parent}


def wait_until(condition: Callable[[], bool], seconds: float = 10, what: str = "") -> None:
    """Wait for a condition; an AssertionError says what did not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(0.01)


def _state_and_parent(pid: int) -> tuple[str, str]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return "", ""
    return fields[0], fields[1]
