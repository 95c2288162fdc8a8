import errno
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import metrics
from app.db import Database
from app.errors import AppError
from app.intake import Addressee, Intake, clean_name
from app.job import Source, State
from app.languages import SPOKEN
from app.liveness import Presence
from app.migrate import open_database
from app.queue.port import Enqueued
from app.queue.sqlite import SqliteQueue
from app.settings import Settings
from app.storage.local import LocalStorage
from tests import hand_ins
from tests.crew import ROOT, Crew
from tests.processes import wait_until

OGG = b"OggS" + bytes(60)
LIMIT = 1000


class Door:
    """An intake over a real store, with the shortest way to hand something in."""

    def __init__(self, data_dir: Path, now: datetime) -> None:
        self.data_dir = data_dir
        self.now = now
        self.database: Database = open_database(data_dir, now)
        self.presence = Presence(data_dir, "web")
        self.queue = SqliteQueue(self.database)
        self.storage = LocalStorage(data_dir, self.presence.scratch)
        settings = Settings.model_validate({"intake": {"max_size": LIMIT}})
        self.intake = Intake(settings, self.queue, self.storage)

    def hand_in(self, data: bytes = OGG, **how: Any) -> Enqueued:
        draft = self.intake.draft()
        try:
            draft.write(data)
        except AppError:
            draft.discard()
            raise
        given = {
            "source": Source.API,
            "display_name": "talk.ogg",
            "language": None,
            "sender": "token:one",
            "now": self.now,
        }
        return self.intake.accept(draft, **given | how)

    def files(self) -> set[str]:
        """The records that have bytes; fails when anything else lies about."""
        root = self.data_dir / "storage" / "files"
        assert not list(self.presence.scratch.iterdir())
        return {path.name for path in root.iterdir()} if root.is_dir() else set()

    def rows(self) -> set[str]:
        with self.database.read() as connection:
            return {row[0] for row in connection.execute("SELECT id FROM files")}

    def jobs(self) -> int:
        return sum(self.queue.counts().values())

    def close(self) -> None:
        self.presence.close()
        self.database.close()


@pytest.fixture
def door(data_dir: Path, now: datetime) -> Iterator[Door]:
    opened = Door(data_dir, now)
    yield opened
    opened.close()


def refused(door: Door, data: bytes = OGG, **how: Any) -> str:
    """The code of a refusal that must leave neither job nor file behind."""
    before = door.jobs(), door.files()
    with pytest.raises(AppError) as found:
        door.hand_in(data, **how)
    assert (door.jobs(), door.files()) == before
    assert door.rows() == door.files()
    return found.value.code


def test_a_recording_becomes_a_job_with_its_bytes(door: Door) -> None:
    before = metrics.accepted.labels(source="api")._value.get()
    taken = door.hand_in(language="ru")
    job = taken.job
    assert taken.created and not taken.same_bytes
    assert (job.state, job.source, job.display_name) == (State.CREATED, Source.API, "talk.ogg")
    assert (job.language, job.sender, job.created) == ("ru", "token:one", door.now)
    assert job.file == job.source_file
    with door.storage.open(door.queue.file(job.file)) as stream:
        assert stream.read() == OGG
    assert door.files() == door.rows() == {job.file}
    assert metrics.accepted.labels(source="api")._value.get() == before + 1


def test_cm01_an_empty_file_is_refused_and_makes_no_job(door: Door) -> None:
    assert refused(door, b"") == "empty_file"


def test_cu03_the_limit_is_taken_and_not_a_byte_more(door: Door) -> None:
    assert door.hand_in(bytes(LIMIT - 1)).created
    assert door.hand_in(bytes(LIMIT)).created
    assert refused(door, bytes(LIMIT + 1)) == "too_large"


def test_a_language_that_no_engine_knows_is_refused(door: Door) -> None:
    for unknown in ("xx", "RU", "russian", "ru'--", "ru\0"):
        assert refused(door, language=unknown) == "unknown_language"


def test_every_language_on_the_list_is_taken_and_none_means_detect(door: Door) -> None:
    assert {door.hand_in(language=one).job.language for one in SPOKEN} == set(SPOKEN)
    assert door.hand_in(language="").job.language is None


NAMES = {
    'запись "встречи" №1.ogg': 'запись "встречи" №1.ogg',
    "会议录音.m4a": "会议录音.m4a",
    "ё" * 255: "ё" * 255,
    "ё" * 300: "ё" * 255,
    "......": "......",
    "  talk.ogg \t": "talk.ogg",
    "": "recording",
    " \n\0\x7f\x85": "recording",
    "gnp\u202eggo.exe": "gnpggo.exe",
    "\u2066\u200f\u061cx\u200b.ogg": "x.ogg",
    "\ufeff\u200b\u2060": "recording",
    "a\nb\rc\x1b[31m\0d.ogg": "abc[31md.ogg",
    "broken\udcff\ud800.ogg": "broken.ogg",
    "👩‍💻.mp3": "👩‍💻.mp3",
    "<img src=x onerror=alert(1)>.ogg": "<img src=x onerror=alert(1)>.ogg",
    "'; DROP TABLE files; --": "'; DROP TABLE files; --",
}


@pytest.mark.parametrize(("sent", "shown"), NAMES.items())
def test_cu02_a_name_is_kept_for_people(door: Door, sent: str, shown: str) -> None:
    assert door.queue.get(door.hand_in(display_name=sent).job.id).display_name == shown


@given(st.text(max_size=400))
def test_cu02_any_name_can_be_stored_and_shown_in_one_line(name: str) -> None:
    shown = clean_name(name)
    assert 1 <= len(shown) <= 255
    assert shown.encode() and len(shown.splitlines()) == 1
    assert clean_name(shown) == shown


@pytest.mark.parametrize(
    "name",
    [
        "../../app.py",
        "/etc/passwd",
        "..\\..\\app.py",
        "C:\\Windows\\win.ini",
        "a\0/../../b.ogg",
        "CON",
        "NUL.wav",
        ".",
        "..",
        "~/.ssh/id_rsa",
        "$(touch x)",
        "-rf",
    ],
)
def test_cu13_a_senders_name_is_never_part_of_a_path(door: Door, tmp_path: Path, name: str) -> None:
    def outside() -> dict[str, int]:
        return {
            str(path): path.stat().st_mtime_ns
            for path in tmp_path.rglob("*")
            if door.data_dir not in path.parents and path != door.data_dir
        }

    (tmp_path / "app.py").write_text("ours")
    before = outside()
    job = door.hand_in(display_name=name).job
    assert outside() == before
    file = door.queue.file(job.file)
    assert re.fullmatch(r"[0-9a-f-]{36}\.ogg", file.file)
    path = door.storage.local_path(file)
    assert path == door.data_dir / "storage" / "files" / file.id / file.file


def test_p46_hazard_21_the_same_key_gives_the_same_job(door: Door) -> None:
    first = door.hand_in(idempotency_key="k1")
    again = door.hand_in(idempotency_key="k1", display_name="other name.ogg")
    assert first.created and not again.created
    assert again.job == first.job
    assert door.jobs() == 1
    assert door.files() == door.rows() == {first.job.file}


def test_p46_the_same_key_for_other_content_or_language_is_a_conflict(door: Door) -> None:
    door.hand_in(idempotency_key="k1")
    assert refused(door, OGG + b"x", idempotency_key="k1") == "idempotency_conflict"
    assert refused(door, idempotency_key="k1", language="ru") == "idempotency_conflict"


def test_p46_a_key_means_something_only_to_its_sender(door: Door) -> None:
    senders = ("token:one", "token:two", "anonymous", None)
    taken = [door.hand_in(idempotency_key="k1", sender=sender) for sender in senders]
    assert all(one.created for one in taken)
    assert door.jobs() == 4


def test_p46_a_key_outlives_the_end_of_its_job(door: Door) -> None:
    job = door.hand_in(idempotency_key="k1").job
    door.queue.cancel(job.id, door.now)
    again = door.hand_in(idempotency_key="k1")
    assert (again.created, again.job.id, again.job.state) == (False, job.id, State.FAILED)


def test_without_a_key_the_same_bytes_are_two_jobs(door: Door) -> None:
    assert door.hand_in().job.id != door.hand_in().job.id
    assert door.hand_in(idempotency_key="").created


def test_cu06_hazard_21_five_at_once_with_one_key_are_one_job_and_one_file(
    data_dir: Path, door: Door, crew: Crew
) -> None:
    for number in range(6):
        moment = time.monotonic() + 0.05
        given = (moment, data_dir, OGG + bytes([number]), f"key {number}", False)
        answers = [answer for (answer,) in crew.all(hand_ins.hand_in, *[given] * 5)]
        assert len({job for job, _ in answers}) == 1
        assert sorted(created for _, created in answers) == [False] * 4 + [True]
    assert door.jobs() == 6
    assert len(door.files()) == 6 and door.files() == door.rows()


def test_cu06_five_at_once_of_the_same_bytes_are_one_job_when_asked_to_reuse(
    data_dir: Path, door: Door, crew: Crew
) -> None:
    given = (time.monotonic() + 0.05, data_dir, OGG, None, True)
    answers = [answer for (answer,) in crew.all(hand_ins.hand_in, *[given] * 5)]
    assert len({job for job, _ in answers}) == 1
    assert len(door.files()) == door.jobs() == 1


def test_p46_hazard_21_a_hand_in_cut_off_between_commit_and_answer_is_found_again(
    data_dir: Path, door: Door, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    with Crew(2) as crew:
        crew.start(0, hand_ins.hand_in_and_wait, data_dir, OGG, "k1", told)
        wait_until(told.exists)
        crew.kill(0)
        crew.start(1, hand_ins.hand_in, 0, data_dir, OGG, "k1", False)
        ((_, created),) = crew.answer(1)
    assert not created
    assert door.jobs() == len(door.files()) == 1


def test_cu06_the_same_bytes_of_the_same_sender_are_offered_their_job(door: Door) -> None:
    first = door.hand_in(language="ru")
    same = door.hand_in(language="ru", reuse_same_bytes=True)
    assert (same.created, same.same_bytes, same.job.id) == (False, True, first.job.id)
    others: list[dict[str, Any]] = [
        {"sender": "token:two", "language": "ru"},
        {"sender": None, "language": "ru"},
        {"language": "en"},
        {"data": OGG + b"x", "language": "ru"},
    ]
    assert all(door.hand_in(reuse_same_bytes=True, **other).created for other in others)
    assert door.files() == door.rows()


def test_a_failed_job_is_not_offered_for_the_same_bytes(door: Door) -> None:
    first = door.hand_in()
    door.queue.cancel(first.job.id, door.now)
    assert door.hand_in(reuse_same_bytes=True).created


def test_again_makes_a_new_job_of_the_same_sound(door: Door) -> None:
    old = door.hand_in(language="ru", display_name="talk.ogg", idempotency_key="k1").job
    new = door.intake.again(old.id, "owner:me", door.now)
    assert new.id != old.id and new.file != old.file
    assert (new.state, new.language, new.display_name) == (State.CREATED, "ru", "talk.ogg")
    assert (new.sender, new.source, new.dedupe_key) == ("owner:me", Source.API, None)
    door.storage.delete(door.queue.file(old.file))
    with door.storage.open(door.queue.file(new.file)) as stream:
        assert stream.read() == OGG


def test_again_without_the_sound_or_the_job_is_refused(door: Door) -> None:
    old = door.hand_in().job
    door.storage.delete(door.queue.file(old.file))
    for job, code in ((old.id, "source_missing"), ("aaaaaaaaaaaaaaa", "not_found")):
        with pytest.raises(AppError) as found:
            door.intake.again(job, None, door.now)
        assert found.value.code == code
    assert door.jobs() == 1 and door.files() == set()


def test_a_store_that_is_full_refuses_and_keeps_no_file(door: Door) -> None:
    with door.database.transaction() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}").fetchall()
    codes = set()
    for _ in range(200):
        try:
            door.hand_in(sender="s" * 4000)
        except AppError as error:
            codes.add(error.code)
            break
    assert codes == {"disk_full"}
    assert door.files() == door.rows()
    with door.database.transaction() as connection:
        connection.execute("PRAGMA max_page_count=1000000").fetchall()
    assert door.hand_in().created
    assert door.files() == door.rows()


def test_values_that_the_store_cannot_write_leave_no_file(door: Door) -> None:
    for broken in ({"sender": "\udcff"}, {"idempotency_key": "\udcff"}):
        with pytest.raises(ValueError, match="surrogates"):
            door.hand_in(**broken)
    assert door.files() == door.rows() == set()


def test_p45_a_fault_after_which_the_row_may_stand_keeps_the_file(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = door.queue.enqueue

    def committed_but_unheard(*given: Any) -> Enqueued:
        really(*given)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(door.queue, "enqueue", committed_but_unheard)
    with pytest.raises(sqlite3.OperationalError):
        door.hand_in()
    assert len(door.files()) == 1 and door.files() == door.rows()


def test_a_storage_that_fails_leaves_no_job_and_no_draft(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no room", "/secret")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", full)
        assert refused(door) == "disk_full"
    assert door.hand_in().created


TRACED = """
import sys
from pathlib import Path
from tests import hand_ins
hand_ins.hand_in(0, Path(sys.argv[1]), b"OggS" + bytes(60), None, False, times=4)
"""


def traced(trace: Path, *command: str) -> bool:
    """Run a command and record what it asks of the disk; False where tracing is not allowed."""
    calls = "trace=fsync,fdatasync,rename,renameat,renameat2"
    options = ["-f", "-y", "-qq", "-o", str(trace), "-e", calls]
    try:
        ran = subprocess.run(["strace", *options, *command], cwd=ROOT, timeout=60, check=False)
    except FileNotFoundError:
        return False
    return ran.returncode == 0


def test_p45_the_kernel_is_asked_to_sync_file_folders_and_row_in_this_order(
    data_dir: Path, tmp_path: Path, now: datetime
) -> None:
    open_database(data_dir, now).close()
    trace = tmp_path / "trace"
    if not traced(trace, "true"):
        pytest.skip("this machine does not let us see what the kernel is asked")
    assert traced(trace, sys.executable, "-c", TRACED, str(data_dir))
    seen = [_told(line, data_dir) for line in trace.read_text().splitlines()]
    assert _in_order(
        seen,
        *[
            r"f\w*sync tmp/web-\w+/draft-\w+",
            r"rename tmp/web-\w+/draft-\w+",
            r"fsync storage/files/\w{15}",
            r"fsync storage/files",
            r"f\w*sync pisar.db-wal",
        ]
        # Four times: with synchronous=NORMAL the log is synced twice, as it begins and ends.
        * 4,
    ), "\n".join(seen)


def _told(line: str, data_dir: Path) -> str:
    """A line of the trace as `call path`, the path as it lies in the data directory."""
    call = re.search(r"(\w+)\(", line)
    path = re.search(rf"{re.escape(str(data_dir))}/?([^\">]*)", line)
    return f"{call.group(1)} {path.group(1)}" if call and path else ""


def _in_order(seen: list[str], *wanted: str) -> bool:
    found = iter(seen)
    return all(any(re.fullmatch(one, line) for line in found) for one in wanted)


@pytest.mark.parametrize(
    ("sender", "priority"),
    [
        ("owner:1", 1),
        ("command", 1),
        ("token:1", 0),
        ("telegram:7", 0),
        ("anonymous", 0),
        (None, 0),
    ],
)
def test_p50_what_the_owner_hands_in_goes_first(
    door: Door, sender: str | None, priority: int
) -> None:
    job = door.hand_in(sender=sender).job
    assert job.priority == priority
    assert door.intake.again(job.id, sender, door.now).priority == priority


def test_p46_a_message_that_comes_again_gives_the_same_job(door: Door) -> None:
    message = Addressee(77, 9, 1)
    from_chat = {"source": Source.TELEGRAM, "sender": message.sender, "addressee": message}
    first = door.hand_in(**from_chat)
    again = door.hand_in(OGG + b"other bytes", **from_chat)
    assert (first.created, again.created, again.job) == (True, False, first.job)
    assert (first.job.tg_chat_id, first.job.tg_reply_message_id) == (9, 1)
    assert first.job.sender == "telegram:9"
    for other in (Addressee(77, 9, 2), Addressee(77, 8, 1), Addressee(78, 9, 1)):
        assert door.hand_in(**from_chat | {"addressee": other}).created
    assert door.jobs() == 4


def test_p25_a_copy_of_a_chats_recording_owes_the_chat_nothing(door: Door) -> None:
    message = Addressee(77, 9, 1)
    first = door.hand_in(source=Source.TELEGRAM, sender=message.sender, addressee=message)
    copy = door.intake.again(first.job.id, "owner:one", door.now)
    assert (copy.source, copy.tg_chat_id) == (Source.WEB, None)
