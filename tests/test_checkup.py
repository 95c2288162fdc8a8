"""`pisar check`: what is broken is found, and how to mend it is said."""

import fcntl
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from app import checkup
from app.checkup import Finding, Verdict, filesystem_kind
from app.clock import to_text
from app.liveness import WEB, WORKER, Presence
from app.migrate import DATABASE_NAME, open_database
from app.settings import Settings, load

GIB = 1024**3


class Usage(NamedTuple):
    """What shutil.disk_usage gives."""

    total: int
    used: int
    free: int


@pytest.fixture
def settings(data_dir: Path) -> Settings:
    return load(
        {
            "PISAR_STORAGE__DATA_DIR": str(data_dir),
            "PISAR_SERVER__PORT": str(free_port()),
            "PISAR_SERVER__METRICS_PORT": "0",
            "PISAR_WORKER__METRICS_PORT": "0",
        }
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's side has its own test; here it would only take time."""
    monkeypatch.setattr(checkup, "_worker_side", lambda _: iter(()))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def found(settings: Settings, subject: str) -> Finding:
    (finding,) = [one for one in checkup.examine(settings) if one.subject == subject]
    return finding


def test_a_fresh_machine_is_well_and_nothing_is_made_but_the_directory(
    settings: Settings, data_dir: Path
) -> None:
    findings = list(checkup.examine(settings))
    assert [one for one in findings if one.verdict is Verdict.BROKEN] == []
    assert list(data_dir.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_broken_and_ends_the_look(
    settings: Settings, data_dir: Path
) -> None:
    data_dir.touch()
    *_, last = checkup.examine(settings)
    assert (last.subject, last.verdict) == ("data directory", Verdict.BROKEN)
    assert "storage.data_dir" in last.mend


def test_a_directory_that_others_may_look_into_is_noted(settings: Settings, data_dir: Path) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o755)
    assert found(settings, "privacy").mend == f"chmod 700 {data_dir}"


@pytest.mark.parametrize(
    ("free", "verdict"),
    [(100 * 1024**2, Verdict.BROKEN), (GIB, Verdict.NOTE), (3 * GIB, Verdict.OK)],
)
def test_the_free_disk_is_judged(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, free: int, verdict: Verdict
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(9 * GIB, 0, free))
    assert found(settings, "disk").verdict is verdict


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
32 22 0:42 / /mnt/share/local rw - tmpfs tmpfs rw
30 22 0:40 / /mnt/share rw - nfs4 host:/export rw
31 22 0:41 / /mnt/my\\040disk rw - xfs /dev/sdb1 rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/pisar", "ext4"),
        ("/mnt/share/pisar", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/my disk/pisar", "xfs"),
        ("/mnt/share/local/x", "tmpfs"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(path: str, kind: str) -> None:
    assert filesystem_kind(Path(path), MOUNTS) == kind


def test_a_network_file_system_is_broken(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "filesystem_kind", lambda *_: "nfs4")
    assert found(settings, "file system").verdict is Verdict.BROKEN


def test_a_sound_database_is_well(settings: Settings, data_dir: Path, now: datetime) -> None:
    open_database(data_dir, now).close()
    finding = found(settings, "database")
    assert finding.verdict is Verdict.OK
    assert "sound and current" in finding.words


def test_hazard_10_what_the_lock_keeps_away_is_told_with_the_version(
    settings: Settings, data_dir: Path, now: datetime
) -> None:
    open_database(data_dir, now).close()
    assert f"SQLite {sqlite3.sqlite_version}" in found(settings, "database").words
    assert "WAL-reset" in checkup._defect("3.40.1") and "WAL-reset" in checkup._defect("3.51.2")
    assert checkup._defect("3.51.3") == checkup._defect("3.100.0") == ""


def test_hazard_18_who_keeps_the_database_busy_is_named(
    settings: Settings, data_dir: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "_LOCK_SECONDS", 0.1)
    open_database(data_dir, now).close()
    lock = os.open(data_dir / f"{DATABASE_NAME}.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    finding = found(settings, "database")
    os.close(lock)
    assert finding.verdict is Verdict.BROKEN and "kill -CONT" in finding.mend
    assert f"process {os.getpid()} holds the writer lock" in finding.words


def scribble(path: Path, now: datetime) -> None:
    path.write_bytes(b"This was a database once." * 1000)


def scramble(path: Path, now: datetime) -> None:
    content = bytearray(path.read_bytes())
    content[8192:20480] = b"\xff" * 12288
    path.write_bytes(content)


def make_newer(path: Path, now: datetime) -> None:
    database = open_database(path.parent, now)
    with database.transaction() as connection:
        values = {"now": to_text(now)}
        connection.execute("INSERT INTO schema_steps VALUES('9999_later.sql', :now)", values)
    database.close()


@pytest.mark.parametrize("spoil", [scribble, scramble, make_newer])
def test_a_database_that_cannot_be_used_is_broken(
    settings: Settings, data_dir: Path, now: datetime, spoil: Callable[[Path, datetime], None]
) -> None:
    open_database(data_dir, now).close()
    spoil(data_dir / DATABASE_NAME, now)
    assert found(settings, "database").verdict is Verdict.BROKEN


def test_steps_that_wait_are_noted_and_not_applied(
    settings: Settings, data_dir: Path, now: datetime
) -> None:
    database = open_database(data_dir, now)
    with database.transaction() as connection:
        connection.execute("DELETE FROM schema_steps WHERE name LIKE '0002%'")
    database.close()
    assert found(settings, "database").verdict is Verdict.NOTE
    assert "applies: 1" in found(settings, "database").words


def test_a_taken_port_is_broken_and_its_setting_named(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", settings.server.port)):
        finding = found(settings, "server.port")
    assert finding.verdict is Verdict.BROKEN
    assert "server.port" in finding.mend


def test_processes_that_run_are_counted(settings: Settings, data_dir: Path) -> None:
    assert found(settings, "worker").verdict is Verdict.NOTE
    web = Presence(data_dir, WEB)
    assert found(settings, "worker").verdict is Verdict.BROKEN
    worker = Presence(data_dir, WORKER)
    assert found(settings, "worker").words == "running: 1"
    worker.close()
    web.close()


def test_the_workers_side_is_asked_in_a_process(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PISAR_RECOGNIZER__MODEL_DIR", str(settings.storage.data_dir))
    findings = {one.subject: one for one in checkup.examine(settings)}
    assert findings["converter"].verdict is Verdict.OK
    assert findings["converter's rights"].verdict in (Verdict.OK, Verdict.NOTE)
    assert findings["recognizer"].verdict is Verdict.BROKEN
    assert "recognizer.model_dir" in findings["recognizer"].mend


def test_a_workers_side_that_cannot_be_run_is_broken(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("app.process.checkup_command", lambda: ("/bin/false",))
    finding = found(settings, "worker's programs")
    assert finding.verdict is Verdict.BROKEN
