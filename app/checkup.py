"""`pisar check`: what is well, what is broken and how to mend it."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app import liveness, process
from app.db import Database
from app.errors import AppError
from app.migrate import DATABASE_NAME, applied_steps
from app.resources import MIGRATIONS
from app.settings import Settings, child_environment

GIB = 1024**3
LEAST_FREE_BYTES = 256 * 1024**2
"""With less free disk a recording of some minutes may not come through."""
COMFORTABLE_FREE_BYTES = 2 * GIB

_LOCK_SECONDS = 3.0
"""Longer than any crowd of writers takes."""
_WAL_RESET_MENDED = (3, 51, 3)

_CHECKUP_SECONDS = 300
# SQLite's locks and its shared memory do not reach over a network, and such a disk may call a
# file synced that is not.
_NETWORK_KINDS = ("nfs", "cifs", "smb", "9p", "ceph", "gluster", "lustre", "afs", "fuse.")


class Verdict(StrEnum):
    """How a thing was found; a note is worth knowing and breaks nothing."""

    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """One line of the checkup: what was looked at, what was seen, and how to mend it."""

    subject: str
    verdict: Verdict
    words: str
    mend: str = ""


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything the service needs, one finding at a time; nothing is changed.

    The one exception: the recognizer's model is put together in the data directory, as its first
    use would do.
    """
    yield Finding("settings", Verdict.OK, "all keys are known and well-formed")
    directory = list(_data_directory(settings.storage.data_dir))
    yield from directory
    if any(finding.verdict is Verdict.BROKEN for finding in directory):
        return
    yield _database(settings.storage.data_dir)
    yield from _worker_side(settings)
    yield from _running(settings)


def _data_directory(data_dir: Path) -> Iterator[Finding]:
    subject = "data directory"
    shown = data_dir.resolve()
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data_dir) as file:
            file.write(b"1")
        free_bytes = shutil.disk_usage(data_dir).free
    except OSError as error:
        mend = "let the service's user own it, or set storage.data_dir"
        yield Finding(subject, Verdict.BROKEN, f"{shown}: {error.strerror}", mend)
        return
    yield Finding(subject, Verdict.OK, f"{shown} can be written to")
    yield _free_disk(free_bytes)
    kind = filesystem_kind(shown, Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    if kind.startswith(_NETWORK_KINDS):
        mend = "set storage.data_dir to a local disk"
        words = f"the data directory is on a network file system ({kind})"
        yield Finding("file system", Verdict.BROKEN, words, mend)
    if shown.stat().st_mode & 0o007:
        words = "other users of this machine may look into the data directory"
        yield Finding("privacy", Verdict.NOTE, words, f"chmod 700 {shown}")


def _free_disk(free_bytes: int) -> Finding:
    words = f"{free_bytes / GIB:.1f} GiB are free"
    if free_bytes < LEAST_FREE_BYTES:
        return Finding("disk", Verdict.BROKEN, words, "free some space: nothing can be taken in")
    if free_bytes < COMFORTABLE_FREE_BYTES:
        return Finding("disk", Verdict.NOTE, words, "a long video may not fit: free some space")
    return Finding("disk", Verdict.OK, words)


def filesystem_kind(path: Path, mountinfo: str) -> str:
    """The kind of file system that a path lies on, by the text of /proc/self/mountinfo."""
    best, kind = -1, "unknown"
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        # Spaces and the like stand in octal there (proc(5)).
        point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), before.split(" ")[4])
        if path.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), after.split(" ")[0]
    return kind


def _database(data_dir: Path) -> Finding:
    subject = "database"
    if not (data_dir / DATABASE_NAME).exists():
        return Finding(subject, Verdict.OK, "not there yet: the first start makes it")
    try:
        with closing(Database(data_dir / DATABASE_NAME, _LOCK_SECONDS)) as database:
            applied = set(applied_steps(database))
            with database.read() as connection:
                faults = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
                version = connection.execute("SELECT sqlite_version()").fetchone()[0]
    except AppError as error:
        return _no_database(error)
    known = {step.name for step in (MIGRATIONS / "sqlite").glob("[0-9]*.sql")}
    if faults != ["ok"]:
        mend = "stop the service and restore the data directory from a backup"
        return Finding(subject, Verdict.BROKEN, f"it is damaged: {faults[0]}", mend)
    if applied - known:
        mend = "install the version of Pisar that wrote it, or a newer one"
        return Finding(subject, Verdict.BROKEN, "a newer version of Pisar wrote it", mend)
    if known - applied:
        words = f"sound; steps that the next start applies: {len(known - applied)}"
        return Finding(subject, Verdict.NOTE, words)
    return Finding(subject, Verdict.OK, f"sound and current (SQLite {version}{_defect(version)})")


def _no_database(error: AppError) -> Finding:
    if error.code != "store_busy":
        return Finding("database", Verdict.BROKEN, error.message)
    words = error.detail or "another process holds the writer lock"
    mend = "end that process, or let it go on (kill -CONT): until then nothing can be written"
    return Finding("database", Verdict.BROKEN, words, mend)


def _defect(version: str) -> str:
    """What an older SQLite needs us for: sqlite.org/wal.html, "The WAL-Reset Bug"."""
    if tuple(int(part) for part in version.split(".")) >= _WAL_RESET_MENDED:
        return ""
    return "; the writer lock keeps its WAL-reset defect away"


def _worker_side(settings: Settings) -> Iterator[Finding]:
    """What only the worker's own modules can tell: asked in a process, never imported (05)."""
    subject = "worker's programs"
    mend = "install anew: make install"
    try:
        answer = subprocess.run(
            process.checkup_command(),
            env=child_environment(settings),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CHECKUP_SECONDS,
            check=True,
        )
        for line in answer.stdout.splitlines():
            told = json.loads(line)
            yield Finding(told["subject"], Verdict(told["verdict"]), told["words"], told["mend"])
    except subprocess.TimeoutExpired:
        yield Finding(subject, Verdict.BROKEN, "they gave no answer", mend)
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        yield Finding(subject, Verdict.BROKEN, f"they cannot be run: {last}", mend)


def _running(settings: Settings) -> Iterator[Finding]:
    data_dir, server = settings.storage.data_dir, settings.server
    webs = liveness.alive(data_dir, liveness.WEB)
    workers = liveness.alive(data_dir, liveness.WORKER)
    if workers:
        yield Finding("worker", Verdict.OK, f"running: {len(workers)}")
    elif webs:
        mend = "start one: pisar worker"
        yield Finding("worker", Verdict.BROKEN, "the web runs, but no worker does", mend)
    else:
        yield Finding("worker", Verdict.NOTE, "not running", "start the service: pisar up")
    if webs:
        yield Finding("web", Verdict.OK, f"running: {len(webs)}")
    else:
        yield _port(server.host, server.port, "server.port", Verdict.BROKEN)
        yield _port("127.0.0.1", server.metrics_port, "server.metrics_port", Verdict.NOTE)
    if not workers:
        port = settings.worker.metrics_port
        yield _port("127.0.0.1", port, "worker.metrics_port", Verdict.NOTE)


def _port(host: str, port: int, key: str, if_taken: Verdict) -> Finding:
    if port == 0:
        return Finding(key, Verdict.OK, "switched off")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # As a server does: a port that another one left a moment ago counts as free.
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        words = f"port {port} on {host}: {error.strerror or os.strerror(error.errno or 0)}"
        return Finding(key, if_taken, words, f"stop what uses it, or set {key}")
    return Finding(key, Verdict.OK, f"port {port} is free")
