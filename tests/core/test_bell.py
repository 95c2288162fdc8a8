"""Bells between processes: who hears them, and that nobody is ever harmed by one (P40)."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.assembly import opened
from app.bell import Bell, path_of, ring
from app.db import Database
from app.job import Job, State, Step
from app.liveness import COMMAND, WORKER, Presence, sweep
from app.migrate import DATABASE_NAME
from app.queue.port import JobFilter
from app.queue.sqlite import SqliteQueue
from app.settings import load
from tests.crew import Crew
from tests.processes import is_running
from tests.queue.hands import START, converted, hand_in, held
from tests.worker import ringers

IN_TIME = 10.0
"""Seconds for a ring to arrive; a wait that nobody rings for ends at once."""


@pytest.fixture
def presence(data_dir: Path) -> Iterator[Presence]:
    ours = Presence(data_dir, WORKER)
    yield ours
    ours.close()


@pytest.fixture
def bell(data_dir: Path, presence: Presence) -> Iterator[Bell]:
    ours = Bell(data_dir, presence.name)
    yield ours
    ours.close()


def test_p40_a_ring_of_another_process_is_heard_by_one_who_waits_already(
    data_dir: Path, bell: Bell, crew: Crew
) -> None:
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(bell.wait, IN_TIME)
        crew.all(ringers.ring_often, (data_dir, 1))
        assert heard.result()
    assert not bell.wait(0)


def test_p40_a_ring_before_the_wait_is_not_lost(data_dir: Path, bell: Bell) -> None:
    ring(data_dir)
    assert bell.wait(0)


def test_p40_every_bell_rings_but_ones_own(data_dir: Path, presence: Presence, bell: Bell) -> None:
    other = Bell(data_dir, "worker-other")
    ring(data_dir, besides=presence.name)
    assert (bell.wait(0), other.wait(0)) == (False, True)
    other.close()


def test_p40_many_rings_count_as_one_and_a_full_bell_keeps_nobody_waiting(
    data_dir: Path, bell: Bell, crew: Crew
) -> None:
    crew.all(ringers.ring_often, *[(data_dir, 20_000)] * 4)
    bell.strike()
    assert bell.wait(0)
    assert not bell.wait(0)


def test_p40_a_bell_that_was_taken_away_rings_no_more(data_dir: Path, presence: Presence) -> None:
    bell = Bell(data_dir, presence.name)
    bell.close()
    assert not path_of(data_dir, presence.name).exists()
    ring(data_dir)


def test_p40_a_killed_workers_bell_is_swept_and_a_live_ones_is_not(
    data_dir: Path, presence: Presence, bell: Bell
) -> None:
    with Crew(1) as mortal:
        name, child = mortal.all(ringers.hang_and_bear, (data_dir,))[0]
        mortal.kill(0)
    os.kill(child, signal.SIGKILL)
    ring(data_dir)
    assert path_of(data_dir, name).exists()
    assert sweep(data_dir) == 1
    assert not path_of(data_dir, name).exists()
    assert bell.wait(0)
    ring(data_dir)
    assert bell.wait(0)


def test_p40_a_bell_that_outlived_its_scratch_directory_is_swept(data_dir: Path) -> None:
    (data_dir / "run").mkdir(parents=True)
    os.mkfifo(path_of(data_dir, "worker-aaaaaaaaaaaaaaa"))
    assert sweep(data_dir) == 1
    assert not list((data_dir / "run").iterdir())


def test_p40_no_child_of_a_killed_worker_holds_its_bell(data_dir: Path) -> None:
    with Crew(1) as mortal:
        name, child = mortal.all(ringers.hang_and_bear, (data_dir,))[0]
        try:
            mortal.kill(0)
            assert is_running(child)
            with pytest.raises(OSError) as nobody_listens:
                os.open(path_of(data_dir, name), os.O_WRONLY | os.O_NONBLOCK)
            assert nobody_listens.value.errno == errno.ENXIO
        finally:
            os.kill(child, signal.SIGKILL)


def test_p40_a_ring_writes_into_nothing_that_only_looks_like_a_bell(
    data_dir: Path, bell: Bell
) -> None:
    run = data_dir / "run"
    precious = data_dir / "precious"
    precious.write_text("precious")
    (run / "worker-file.bell").write_text("file")
    (run / "worker-link.bell").symlink_to(precious)
    (run / "worker-folder.bell").mkdir()
    (run / "worker-nowhere.bell").symlink_to(run / "nowhere")
    ring(data_dir)
    assert precious.read_text() == "precious"
    assert (run / "worker-file.bell").read_text() == "file"
    assert bell.wait(0), "the real one rang all the same"


@pytest.mark.parametrize("refused", ["mkfifo", "open"])
def test_p40_where_no_fifo_can_be_made_there_is_only_the_poll(
    data_dir: Path,
    presence: Presence,
    refused: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as broken:
        broken.setattr(os, refused, refuse)
        bell = Bell(data_dir, presence.name)
    assert "Operation not permitted" in caplog.text
    ring(data_dir)
    assert not bell.wait(0)
    bell.strike()
    assert bell.wait(0), "the process itself still ends its wait"
    bell.close()
    assert [path.name for path in (data_dir / "run").iterdir()] == [f"{presence.name}.lock"]


def test_p40_a_recording_is_accepted_though_no_bell_can_be_rung(data_dir: Path) -> None:
    with opened(load({"PISAR_STORAGE__DATA_DIR": str(data_dir)}), COMMAND) as house:
        run = data_dir / "run"
        run.rename(data_dir / "away")
        job = hand_in(house.queue)
        run.write_text("a file where the folder was")
        assert hand_in(house.queue).seq == job.seq + 1
        run.unlink()
        (data_dir / "away").rename(run)


def test_p40_the_doors_ring_for_what_they_take_in(data_dir: Path, bell: Bell) -> None:
    with opened(load({"PISAR_STORAGE__DATA_DIR": str(data_dir)}), COMMAND) as house:
        assert not bell.wait(0)
        hand_in(house.queue)
        assert bell.wait(0)


def _enqueue(queue: SqliteQueue) -> State:
    hand_in(queue)
    return State.CREATED


def _finish(queue: SqliteQueue) -> State:
    hand_in(queue)
    queue.finish(held(queue), converted(), START)
    return State.CONVERTED


def _release(queue: SqliteQueue) -> State:
    hand_in(queue)
    queue.release(held(queue), START)
    return State.CREATED


def _release_lost(queue: SqliteQueue) -> State:
    hand_in(queue)
    held(queue)
    queue.release_lost(lambda _: True, START)
    return State.CREATED


def _revive(queue: SqliteQueue) -> State:
    job = hand_in(queue)
    queue.cancel(job.id, START)
    queue.revive(job.id, START)
    return State.CREATED


def _resume(queue: SqliteQueue) -> State:
    queue.pause_step(Step.CONVERT, START)
    hand_in(queue)
    queue.resume_step(Step.CONVERT)
    return State.CREATED


@pytest.mark.parametrize(
    "verb", [_enqueue, _finish, _release, _release_lost, _revive, _resume], ids=lambda f: f.__name__
)
def test_p40_who_hears_a_ring_finds_the_job_ready(
    data_dir: Path, database: Database, verb: Callable[[SqliteQueue], State]
) -> None:
    """Rung before the commit, the bell would send the worker back to its poll."""
    other = Database(data_dir / DATABASE_NAME)
    reader = SqliteQueue(other)
    seen: list[set[State]] = []

    def look() -> None:
        jobs = reader.page(JobFilter(), before=None, limit=9).jobs
        # Who waits in line has a place in it.
        ready = {job.state for job in jobs if reader.position(job)}
        seen.append(set() if reader.paused_steps() else ready)

    ready = verb(SqliteQueue(database, on_ready=look))
    other.close()
    assert seen[-1] == {ready}


_ELSEWHERE: dict[str, tuple[Callable[[SqliteQueue, str], object], Callable[[Job | None], bool]]] = {
    "cancel": (
        lambda queue, job_id: queue.cancel(job_id, START),
        lambda job: job is not None and job.state is State.FAILED,
    ),
    "delete": (lambda queue, job_id: queue.delete(job_id, START), lambda job: job is None),
    "undelete": (
        lambda queue, job_id: queue.undelete(job_id, 60, START),
        lambda job: job is not None,
    ),
}


@pytest.mark.parametrize("verb", _ELSEWHERE)
def test_p40_who_lost_a_claim_or_owes_a_reply_again_hears_of_it_after_the_commit(
    data_dir: Path, database: Database, verb: str
) -> None:
    """A cancelled step ends at the ring, and a bot looks for what is owed."""
    act, is_done = _ELSEWHERE[verb]
    other = Database(data_dir / DATABASE_NAME)
    reader, seen = SqliteQueue(other), list[bool]()
    queue = SqliteQueue(database, on_ready=lambda: seen.append(is_done(reader.find(job.id))))
    job = hand_in(SqliteQueue(database))
    held(queue)
    if verb == "undelete":
        SqliteQueue(database).delete(job.id, START)
    act(queue, job.id)
    other.close()
    assert seen == [True]
