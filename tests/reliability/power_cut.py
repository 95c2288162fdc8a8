"""The power goes while processes hand in and work: what of the acknowledged is still there."""

import hashlib
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.migrate import DATABASE_NAME
from app.storage.local import COLLECTION
from tests.processes import wait_until
from tests.reliability import power_writers
from tests.reliability.loop_disk import after_the_cut, fresh_disk

ROOT = Path(__file__).resolve().parents[2]
ROLES = ("web", "web", "worker")


@dataclass(frozen=True)
class Cut:
    """One power cut: how much had been acknowledged, and which of it is not there any more."""

    acknowledged: int
    lost: list[str]
    integrity: str


def cuts(folder: Path, how: str, number: int, chance: random.Random) -> Iterator[Cut]:
    """Cut the power of one disk at so many random moments; NoDiskError when there can be none."""
    with fresh_disk(folder) as disk, _writing(disk.folder / "data", folder, how) as writers:
        for _ in range(number):
            moment = time.monotonic() + chance.uniform(0.2, 0.9)
            wait_until(lambda moment=moment: time.monotonic() > moment)  # type: ignore[misc]
            writers.stop()
            told = writers.told()
            disk.cut(folder / "cut.img")
            writers.go_on()
            with after_the_cut(folder / "cut.img", folder / "after") as remains:
                yield _judge(remains / "data", told)


class _Writers:
    """The processes of power_writers, and what they told."""

    def __init__(self, data_dir: Path, telling: Path, how: str) -> None:
        self._told = [telling / f"told-{number}" for number in range(len(ROLES))]
        module = power_writers.__name__
        self._processes = []
        for role, path in zip(ROLES, self._told, strict=True):
            with path.open("wb") as out:
                command = [sys.executable, "-m", module, role, str(data_dir), how]
                self._processes.append(subprocess.Popen(command, cwd=ROOT, stdout=out))
        wait_until(lambda: all(path.stat().st_size for path in self._told), 30, "all write")

    def stop(self) -> None:
        """Stop them all wherever they are; a call of the kernel that was begun is ended first."""
        for process in self._processes:
            process.send_signal(signal.SIGSTOP)
        wait_until(lambda: all(map(_is_stopped, self._processes)), 10, "all are stopped")

    def go_on(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGCONT)

    def told(self) -> list[list[str]]:
        """The whole lines so far, as words."""
        lines = [line for path in self._told for line in path.read_text().splitlines(True)]
        return [line.split() for line in lines if line.endswith("\n")]

    def kill(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@contextmanager
def _writing(data_dir: Path, telling: Path, how: str) -> Iterator[_Writers]:
    writers = _Writers(data_dir, telling, how)
    try:
        yield writers
    finally:
        writers.kill()


def _is_stopped(process: "subprocess.Popen[bytes]") -> bool:
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    states = [(thread / "stat").read_text().rsplit(")", 1)[1].split()[0] for thread in threads]
    assert process.poll() is None, "a writer has ended"
    return set(states) == {"T"}


def _judge(data_dir: Path, told: list[list[str]]) -> Cut:
    connection = sqlite3.connect(data_dir / DATABASE_NAME)
    try:
        whole = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        remains = _Remains(connection, data_dir)
        lost = [" ".join(words) for words in told if not remains.hold(*words)]
        return Cut(len(told), lost, "ok" if (whole, broken) == (["ok"], []) else f"{whole}{broken}")
    except sqlite3.DatabaseError as error:
        return Cut(len(told), [" ".join(words) for words in told], str(error))
    finally:
        connection.close()


class _Remains:
    """What stands in the rows and files after a cut."""

    def __init__(self, connection: sqlite3.Connection, data_dir: Path) -> None:
        self._files = data_dir / "storage" / COLLECTION
        self._jobs = {
            row[0]: row[1:]
            for row in connection.execute(
                "SELECT id, source_file, file, acquisition_id FROM transcribe_jobs"
            )
        }
        files = connection.execute("SELECT id, file, size, sha256 FROM files")
        self._stored = {row[0]: row[1:] for row in files}
        self._succeeded = set(
            connection.execute("SELECT job, step FROM job_events WHERE outcome = 'success'")
        )
        self._noted = {
            row[0]
            for row in connection.execute("SELECT job FROM job_events WHERE outcome = 'accepted'")
        }
        self._texts = dict(connection.execute("SELECT job, transcription_text FROM transcripts"))

    def hold(self, what: str, job_id: str, step: str = "", token: str = "") -> bool:
        """True when what was acknowledged is still so."""
        if job_id not in self._jobs:
            return False
        source, file, holder = self._jobs[job_id]
        if what == "accepted":
            return job_id in self._noted and self._has_bytes(source)
        if what == "claimed":
            # The end of the step may have been written and not yet told.
            return holder == token or (job_id, step) in self._succeeded
        if step == "convert" and not self._has_bytes(file):
            return False
        if step == "check" and self._texts.get(job_id) != power_writers.said_in(job_id):
            return False
        return (job_id, step) in self._succeeded

    def _has_bytes(self, record: str) -> bool:
        name, size, sha256 = self._stored[record]
        path = self._files / record / name
        if not path.is_file() or path.stat().st_size != size:
            return False
        data = path.read_bytes()
        # Of a copy no digest is kept; random bytes that are all zero were never written.
        return hashlib.sha256(data).hexdigest() == sha256 if sha256 else any(data[-4096:])
