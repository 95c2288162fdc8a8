"""The lock between processes: its order, its deadline, and what a death in the line does."""

import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from app.writer_lock import WriterLock
from tests.core import writing
from tests.crew import Crew
from tests.processes import wait_until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.lock"


@pytest.fixture
def made(path: Path) -> Iterator[Callable[[], WriterLock]]:
    """Locks with a file of their own each, as other processes have them."""
    locks: list[WriterLock] = []

    def make() -> WriterLock:
        locks.append(WriterLock(path))
        return locks[-1]

    yield make
    for lock in locks:
        lock.close()


def places(path: Path) -> int:
    """How many places of the line are taken, by the kernel's own list."""
    inode = f":{path.stat().st_ino}"
    lines = Path("/proc/locks").read_text().splitlines()
    held = [line.split() for line in lines if "OFDLCK" in line and "->" not in line]
    return len({fields[6] for fields in held if fields[5].endswith(inode)})


def in_line(path: Path, pool: ThreadPoolExecutor, lock: WriterLock) -> Future[bool]:
    """Begin to wait, and return once the place is taken."""
    before = places(path)
    waiting = pool.submit(lock.acquire, 20)
    wait_until(lambda: places(path) > before, what="the place is taken")
    return waiting


def is_free(path: Path) -> bool:
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True


def test_s30_first_come_first_served_and_the_one_before_goes_to_the_end(
    path: Path, made: Callable[[], WriterLock]
) -> None:
    locks = [made() for _ in range(5)]
    order: list[int] = []
    assert locks[0].acquire(1)
    with ThreadPoolExecutor(5) as pool:

        def pass_on(number: int, waiting: Future[bool]) -> None:
            assert waiting.result(timeout=20)
            order.append(number)
            locks[number].release()

        waits = [in_line(path, pool, lock) for lock in locks[1:]]
        followers = [
            threading.Thread(target=pass_on, args=(number, waiting))
            for number, waiting in enumerate(waits, 1)
        ]
        for follower in followers:
            follower.start()
        locks[0].release()
        # At once: it would be inside again before anyone had woken up.
        assert locks[0].acquire(20)
        order.append(0)
        locks[0].release()
        for follower in followers:
            follower.join(20)
    assert order == [1, 2, 3, 4, 0]
    assert places(path) == 0


def test_hazard_18_a_wait_ends_at_its_deadline_and_a_late_lock_is_let_go(
    path: Path, made: Callable[[], WriterLock]
) -> None:
    holder, late, next_one = made(), made(), made()
    assert holder.acquire(1)
    assert not late.acquire(0.05)
    assert places(path) > 0, "the request keeps its place"
    holder.release()
    wait_until(lambda: is_free(path), what="what nobody wants any more is let go")
    assert next_one.acquire(5)
    next_one.release()
    assert late.acquire(5)
    late.release()


def test_s30_a_request_that_was_given_up_serves_the_next_caller(
    path: Path, made: Callable[[], WriterLock]
) -> None:
    holder, mine, other = made(), made(), made()
    assert holder.acquire(1)
    assert not mine.acquire(0)
    with ThreadPoolExecutor(2) as pool:
        wait_until(lambda: places(path) == 1)
        behind = in_line(path, pool, other)
        again = pool.submit(mine.acquire, 20)
        holder.release()
        assert again.result(timeout=20), "the place from before, in front of the other one"
        assert not behind.done()
        mine.release()
        assert behind.result(timeout=20)
        other.release()


def test_s30_a_death_in_the_line_costs_order_and_never_exclusion(
    path: Path, made: Callable[[], WriterLock], crew_of_two: Crew, tmp_path: Path
) -> None:
    holder, last = made(), made()
    assert holder.acquire(1)
    begun = tmp_path / "begun"
    crew_of_two.start(0, writing.wait_in_line, path, begun)
    wait_until(lambda: begun.exists() and places(path) >= 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = in_line(path, pool, last)
        crew_of_two.kill(0)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.2)
        holder.release()
        assert waiting.result(timeout=20)
        last.release()


def test_s30_the_death_of_the_holder_frees_the_lock(
    path: Path, made: Callable[[], WriterLock], crew_of_two: Crew, tmp_path: Path
) -> None:
    held, release = tmp_path / "held", tmp_path / "release"
    crew_of_two.start(0, writing.hold_lock, path, held, release)
    wait_until(held.exists)
    mine = made()
    with ThreadPoolExecutor(1) as pool:
        waiting = in_line(path, pool, mine)
        crew_of_two.kill(0)
        assert waiting.result(timeout=5)
    mine.release()


def test_hazard_18_who_holds_the_lock_is_named(
    path: Path, made: Callable[[], WriterLock], crew_of_two: Crew, tmp_path: Path
) -> None:
    held, release = tmp_path / "held", tmp_path / "release"
    mine = made()
    crew_of_two.start(0, writing.hold_lock, path, held, release)
    wait_until(held.exists)
    assert not mine.acquire(0)
    assert mine.holder().startswith("process ") and "stopped" not in mine.holder()
    crew_of_two.signal(0, signal.SIGSTOP)
    wait_until(lambda: "(stopped)" in mine.holder())
    crew_of_two.signal(0, signal.SIGCONT)
    release.touch()
    crew_of_two.answer(0)


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\xff" * 7 + b"\x7f", b"words"])
def test_s30_whatever_the_file_holds_the_lock_is_given(
    path: Path, made: Callable[[], WriterLock], content: bytes
) -> None:
    path.write_bytes(content)
    holder, other = made(), made()
    assert holder.acquire(1)
    with ThreadPoolExecutor(1) as pool:
        waiting = in_line(path, pool, other)
        holder.release()
        assert waiting.result(timeout=5)
    other.release()


def test_closing_ends_the_keeper_and_leaves_no_file_open(
    path: Path, made: Callable[[], WriterLock]
) -> None:
    holder = made()
    assert holder.acquire(1)
    before = len(list(Path("/proc/self/fd").iterdir()))
    idle, waiting = WriterLock(path), WriterLock(path)
    for lock in (idle, waiting):
        assert not lock.acquire(0)
    idle.close()
    waiting.close()
    holder.release()
    wait_until(lambda: len(list(Path("/proc/self/fd").iterdir())) == before)
    assert not [one for one in threading.enumerate() if one.name == "writer-lock"]


@pytest.fixture
def crew_of_two() -> Iterator[Crew]:
    with Crew(2) as members:
        yield members
