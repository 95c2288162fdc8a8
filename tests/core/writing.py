"""What other processes do to the database in the tests of the writer; run by tests/crew.py."""

import os
import resource
import signal
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import app.db
import app.writer
from app import checkup
from app.db import Database, UndoneError
from app.errors import AppError
from app.migrate import DATABASE_NAME, open_database
from app.queue.sqlite import SqliteQueue
from app.settings import load
from app.writer_lock import WriterLock
from tests.chores import NOW
from tests.processes import wait_until
from tests.queue.hands import converted, hand_in, held


def note(database: Database, who: int, number: int) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES(?, ?)", (who, number))


def count(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])


def count_up(path: Path, times: int) -> None:
    """Read a number, then write the next one: the classic way to be refused an upgrade."""
    database = Database(path)
    for _ in range(times):
        with database.transaction() as connection:
            highest = connection.execute("SELECT max(number) FROM notes").fetchone()[0]
            connection.execute("INSERT INTO notes VALUES(0, ?)", ((highest or 0) + 1,))
    database.close()


def write_until(total: int, path: Path, ready: Path, crowd: int) -> int:
    """Write as often as one gets to, until there are so many rows of all; gives one's own share.

    It begins when the whole crowd has its file in ready.
    """
    database = Database(path)
    own = os.getpid()
    (ready / str(own)).touch()
    wait_until(lambda: len(list(ready.iterdir())) == crowd, 60, "all are ready")
    share = 0
    while True:
        with database.transaction() as connection:
            rows = connection.execute("SELECT count(*) FROM notes").fetchone()[0]
            if rows < total:
                connection.execute("INSERT INTO notes VALUES(?, ?)", (own, share))
        if rows >= total:
            database.close()
            return share
        share += 1


def read_for_long(path: Path, begun: Path, release: Path) -> None:
    """A foreign program that keeps a read open."""
    foreign = sqlite3.connect(path, isolation_level=None)
    foreign.execute("BEGIN")
    foreign.execute("SELECT count(*) FROM notes").fetchone()
    begun.touch()
    wait_until(release.exists, 60, "the word to let go")
    foreign.close()


def open_and_close(path: Path) -> None:
    """As a command does, which may be the last one to close."""
    database = Database(path)
    count(database)
    database.close()


def wait_in_line(path: Path, begun: Path) -> None:
    """Stand in line for the writer lock for ever."""
    lock = WriterLock(path)
    begun.touch()
    lock.acquire(600)


def hold_lock(path: Path, held: Path, release: Path) -> None:
    lock = WriterLock(path)
    assert lock.acquire(10)
    held.touch()
    wait_until(release.exists, 60, "the word to let go")
    lock.close()


def fork_while_quiet(path: Path) -> tuple[int, int]:
    """Both write after the fork; the child, on its own lock, waits for the parent's transaction."""
    database = Database(path, 0.2)
    note(database, 1, 1)
    go, gone = os.pipe()
    child = os.fork()
    if child == 0:
        os._exit(_as_child(database, go))
    with database.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES(1, 2)")
        os.write(gone, b"x")
        # The child has been refused once this is over.
        time_is_up = threading.Event()
        time_is_up.wait(0.6)
    os.write(gone, b"x")
    _, status = os.waitpid(child, 0)
    note(database, 1, 3)
    rows = count(database)
    database.close()
    return os.waitstatus_to_exitcode(status), rows


def _as_child(database: Database, go: int) -> int:
    signal.alarm(20)
    try:
        os.read(go, 1)
        try:
            note(database, 2, 1)
        except AppError as error:
            assert error.code == "store_busy"
        else:
            return 2
        os.read(go, 1)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: note(database, 2, number), range(10)))
        assert count(database) >= 10
        database.close()
    except BaseException:
        return 1
    return 0


def fork_inside(path: Path) -> tuple[int, int]:
    """The parent forks in its own transaction; gives how the child fared, and what stands."""
    database = Database(path)
    with database.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES(1, 1)")
        child = os.fork()
        if child == 0:
            os._exit(_refusals(database))
        _, status = os.waitpid(child, 0)
    note(database, 1, 2)
    rows = count(database)
    database.close()
    return os.waitstatus_to_exitcode(status), rows


def leave_the_block_in_a_child(path: Path) -> tuple[int, int]:
    """The child leaves the block that the parent entered; gives how it fared, and what stands."""
    database = Database(path)
    child = -1
    try:
        with database.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES(1, 1)")
            child = os.fork()
            if child:
                os.waitpid(child, os.WNOHANG)
    except RuntimeError:
        os._exit(7 if child == 0 else 8)
    if child == 0:
        os._exit(9)
    _, status = os.waitpid(child, 0)
    rows = count(database)
    database.close()
    return os.waitstatus_to_exitcode(status), rows


def fork_beside_a_writer(path: Path, ready: Path, release: Path) -> None:
    """Fork while another thread writes, have the child be refused and live on, then wait."""
    app.db.QUIET_SECONDS = 0.2
    database = Database(path)
    inside = threading.Event()

    def hold() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES(9, 9)")
            inside.set()
            signal.pause()

    threading.Thread(target=hold, daemon=True).start()
    inside.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        if _refusals(database) == 2:
            ready.write_text(str(os.getpid()))
        wait_until(release.exists, 50, "the word to end")
        os._exit(0)
    signal.pause()


def _refusals(database: Database) -> int:
    """How many of the verbs say that the fork came at a bad time."""
    refused = 0
    for verb in (database.read, database.transaction):
        try:
            with verb():
                pass
        except RuntimeError as error:
            refused += "forked" in str(error)
    database.close()
    return refused


def outlive_the_parent(path: Path, begun: Path, release: Path) -> int:
    """A parent that closes after the fork; the child writes on. Gives the child's pid."""
    database = Database(path)
    note(database, 1, 1)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        note(database, 2, 1)
        begun.touch()
        wait_until(release.exists, 50, "the word to go on")
        note(database, 2, 2)
        os._exit(0)
    wait_until(begun.exists)
    database.close()
    return child


def reap(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def opened_files(data_dir: Path) -> list[str]:
    """The names in the data directory that Python opened in a job's life and a checkup.

    SQLite opens its files itself, unseen by the audit; what is seen was opened past it.
    """
    # The worker's side runs in a process of its own.
    checkup._worker_side = lambda _: iter(())
    found: list[str] = []

    def listen(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("open", "shutil.copyfile") and isinstance(arguments[0], str | os.PathLike):
            path = Path(os.fspath(arguments[0]))
            if path.parent == data_dir and path.name.startswith(DATABASE_NAME):
                found.append(path.name)

    sys.addaudithook(listen)
    database = open_database(data_dir, NOW)
    queue = SqliteQueue(database)
    hand_in(queue, NOW)
    assert queue.finish(held(queue, now=NOW), converted(), NOW)
    assert database.wal_bytes() > 0 and database.is_writable(5)
    subjects = [one.subject for one in checkup.examine(load(_environ(data_dir)))]
    assert "database" in subjects
    database.close()
    return found


def _environ(data_dir: Path) -> dict[str, str]:
    ports = dict.fromkeys(("SERVER__METRICS_PORT", "WORKER__METRICS_PORT"), "0")
    return {f"PISAR_{key}": value for key, value in ports.items()} | {
        "PISAR_STORAGE__DATA_DIR": str(data_dir)
    }


def claim_on_a_full_disk(data_dir: Path) -> tuple[str, int]:
    """What a claim came to whose COMMIT cannot be written, and the attempts of the next one."""
    database = open_database(data_dir, NOW)
    queue = SqliteQueue(database)
    hand_in(queue, NOW)

    with no_room(database):
        try:
            held(queue, now=NOW)
            said = "claimed"
        except (AppError, sqlite3.OperationalError) as error:
            said = type(error).__name__
    attempts = held(queue, now=NOW).job.attempts
    database.close()
    return said, attempts


class no_room:  # noqa: N801 - reads as what it makes
    """Within it the log cannot grow; SIGXFSZ is ignored by Python, so that it is EFBIG."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        _, self._hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._database.wal_bytes(), self._hard))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._hard, self._hard))


def commit_together_on_a_full_disk(path: Path, threads: int) -> tuple[int, int]:
    """How many of a group's threads were told that all is well, and how many rows stand."""
    app.writer.GROUP_SECONDS = 60.0
    database = Database(path)
    faults = (AppError, sqlite3.OperationalError, UndoneError)

    def work(who: int) -> int:
        try:
            note(database, who, 1)
        except faults:
            return 0
        return 1

    with ThreadPoolExecutor(threads) as pool, no_room(database):
        try:
            with database.transaction() as connection:
                connection.execute("INSERT INTO notes VALUES(0, 0)")
                waiting = [pool.submit(work, who) for who in range(threads)]
                wait_until(lambda: in_line(database) == threads, what="all stand in line")
            told_well = 1
        except faults:
            told_well = 0
        told_well += sum(one.result(timeout=20) for one in waiting)
    rows = count(database)
    note(database, 99, 1)
    database.close()
    return told_well, rows


def in_line(database: Database) -> int:
    """How many threads of this process wait for their turn."""
    return len(database._handles.writer._line)


def interrupted_in_line(path: Path) -> tuple[str, int]:
    """Ctrl-C while the main thread waits for its turn; then both threads write."""
    database = Database(path)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    leave = threading.Event()
    inside = threading.Event()

    def hold() -> None:
        with database.transaction():
            inside.set()
            leave.wait(20)

    def press() -> None:
        wait_until(lambda: in_line(database) == 1)
        os.kill(os.getpid(), signal.SIGINT)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(20)
    threading.Thread(target=press).start()
    said = "nothing"
    try:
        note(database, 1, 1)
    except KeyboardInterrupt:
        said = "interrupted"
    leave.set()
    holder.join()
    note(database, 1, 2)
    rows = count(database)
    database.close()
    return said, rows
