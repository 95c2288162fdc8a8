"""Servers of one run: from Debian's packages, on loopback, over folders of the run's own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import wait_until

_PACKAGES = {"redis": "redis-server", "postgres": "postgresql", "strace": "strace"}
_READY_SECONDS = 30.0
_STOP_SECONDS = 30.0
_INSTALL_SECONDS = 600.0
_NO_START = Path("/usr/sbin/policy-rc.d")


class MissingError(Exception):
    """A program of Debian is not there and could not be installed; says how to do it by hand."""


@contextmanager
def running(server: str, folder: Path) -> Iterator[str]:
    """A server over a folder of its own, ended afterwards; gives its address, "" for none."""
    if not server:
        yield ""
        return
    with _SERVERS[server](folder) as address:
        yield address


def program(name: str) -> Path:
    """A server's own program, installed from Debian where it is missing and we may."""
    found = _find(name)
    if found is None:
        _install(_PACKAGES[name])
        found = _find(name)
    if found is None:
        raise MissingError(f"apt-get install {_PACKAGES[name]}")
    return found


def _find(name: str) -> Path | None:
    if name == "postgres":
        # Debian keeps the server's programs of each version apart, outside PATH.
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        return found[-1] if found else None
    where = shutil.which("redis-server" if name == "redis" else name)
    return Path(where) if where else None


def _install(package: str) -> None:
    if os.geteuid() or not shutil.which("apt-get"):
        raise MissingError(f"sudo apt-get install {package}")
    print(f"installing Debian's {package} …", file=sys.stderr)
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    # Debian would start the system's own instance as well; 101 is the word that forbids it.
    is_ours = not _NO_START.exists()
    if is_ours:
        _NO_START.write_text("#!/bin/sh\nexit 101\n")
        _NO_START.chmod(0o755)
    try:
        for command in (["update"], ["install", "-y", "--no-install-recommends", package]):
            subprocess.run(
                ["apt-get", "-qq", *command],
                env=environ,
                stdout=subprocess.DEVNULL,
                timeout=_INSTALL_SECONDS,
                check=False,
            )
    finally:
        if is_ours:
            _NO_START.unlink()


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    port = _free_port()
    command = [
        *(str(program("redis")), "--bind", "127.0.0.1", "--port", str(port)),
        *("--dir", str(folder), "--save", "", "--appendonly", "yes", "--appendfsync", "always"),
    ]
    with _serving(command, port, folder, {}):
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    port, server = _free_port(), program("postgres")
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:
        # It refuses to run as root, so as the user that its package brings along.
        as_user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        shutil.chown(folder, "postgres", "postgres")
        folder.parent.chmod(0o711)  # a temporary directory that it may walk through, not read
    subprocess.run(
        [
            *(server.with_name("initdb"), "-D", folder / "cluster"),
            *("-A", "trust", "-E", "UTF8", "--locale=C", "-U", "postgres"),
        ],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        check=True,
        **as_user,
    )
    command = [
        *(str(server), "-D", str(folder / "cluster"), "-p", str(port), "-k", str(folder)),
        *("-c", "listen_addresses=127.0.0.1"),
    ]
    with _serving(command, port, folder, as_user, ready="ready to accept connections"):
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"


@contextmanager
def _serving(
    command: Sequence[str], port: int, folder: Path, how: Mapping[str, Any], ready: str = ""
) -> Iterator[None]:
    log_path = folder / "server.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **how)
    try:
        wait_until(
            lambda: _answers(port) and ready in log_path.read_text(), _READY_SECONDS, command[0]
        )
        yield
    finally:
        # For PostgreSQL the fast shutdown, which does not wait for clients.
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_SERVERS: dict[str, Callable[[Path], Any]] = {"redis": _redis, "postgres": _postgres}
