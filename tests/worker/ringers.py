"""What other processes do with bells, called by name through tests/crew.py."""

import subprocess
from pathlib import Path

from app.bell import Bell, ring
from app.liveness import WORKER, Presence

_KEPT: list[object] = []


def hang_and_bear(data_dir: Path) -> tuple[str, int]:
    """Be a worker with a bell until killed, beside a child that outlives us and is given all."""
    presence = Presence(data_dir, WORKER)
    _KEPT.extend((presence, Bell(data_dir, presence.name)))
    # Only close-on-exec keeps the bell from it.
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, close_fds=False)
    return presence.name, child.pid


def ring_often(data_dir: Path, times: int) -> None:
    for _ in range(times):
        ring(data_dir)
