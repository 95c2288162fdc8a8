"""A child that confines itself and then tries what it must not be able to do."""

import contextlib
import os
import resource
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from worker.boot import Channel
from worker.sandbox import Limits, confine

LIMITS = Limits(memory_bytes=2**30, cpu_seconds=60, file_bytes=2**20)


def main(channel: Channel, arguments: Sequence[str]) -> int:
    source, folder, outside, port, foreign_pid, user = arguments
    if user != "0":
        os.setgroups([])
        os.setuid(int(user))
    done = confine(LIMITS, read=[Path(source)], write=[Path(folder)])
    tries = {
        "read source": lambda: Path(source).read_bytes(),
        "write in folder": lambda: Path(folder, "new.wav").write_bytes(b"x"),
        "write beyond the size": lambda: Path(folder, "big.wav").write_bytes(bytes(2**20 + 1)),
        "rewrite source": lambda: Path(source).write_bytes(b"x"),
        "read outside": lambda: Path(outside, "secret").read_bytes(),
        "list outside": lambda: list(Path(outside).iterdir()),
        "write outside": lambda: Path(outside, "new").write_bytes(b"x"),
        "remove outside": lambda: Path(outside, "secret").unlink(),
        "read settings of the system": lambda: Path("/etc/passwd").read_bytes(),
        "connect by TCP": lambda: socket.socket().connect(("127.0.0.1", int(port))),
        "open a UDP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "open a local socket": lambda: socket.socket(socket.AF_UNIX).close(),
        "start a program": lambda: subprocess.run(["/bin/true"], check=True),
        "signal another process": lambda: os.kill(int(foreign_pid), 0),
        "read another's environment": lambda: Path(f"/proc/{foreign_pid}/environ").read_bytes(),
        "take much memory": lambda: len(bytearray(2**31)),
    }
    channel.say(
        {
            "done": [done.files, done.network],
            "succeeded": [name for name, attempt in tries.items() if _succeeds(attempt)],
            "limits": {
                name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
                for name in ("AS", "CPU", "FSIZE", "NOFILE", "CORE")
            },
        }
    )
    return 0


def _succeeds(attempt) -> bool:
    with contextlib.suppress(OSError, MemoryError):
        attempt()
        return True
    return False
