import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app import liveness
from app.liveness import COMMAND, WEB, WORKER, Presence, is_gone, sweep, workers_alive
from tests import chores
from tests.crew import Crew
from tests.processes import is_running


@pytest.fixture
def presence(data_dir: Path) -> Iterator[Presence]:
    ours = Presence(data_dir, WORKER)
    yield ours
    ours.close()


def test_a_process_is_alive_from_its_start_to_its_orderly_end(data_dir: Path) -> None:
    presence = Presence(data_dir, WORKER)
    assert not is_gone(data_dir, presence.name)
    assert presence.scratch.is_dir()
    presence.close()
    assert is_gone(data_dir, presence.name)
    assert not presence.scratch.exists()
    assert not list((data_dir / "run").iterdir())


def test_names_are_never_used_twice_and_say_the_role(data_dir: Path) -> None:
    several = [Presence(data_dir, WEB) for _ in range(20)]
    assert len({presence.name for presence in several}) == 20
    assert all(presence.name.startswith("web-") for presence in several)
    for presence in several:
        presence.close()


def test_who_never_was_is_gone(data_dir: Path) -> None:
    assert is_gone(data_dir, "worker-aaaaaaaaaaaaaaa")
    assert liveness.alive(data_dir, WORKER) == []
    assert sweep(data_dir) == 0


def test_only_the_workers_count_as_workers(data_dir: Path, presence: Presence) -> None:
    others = [Presence(data_dir, role) for role in (WEB, COMMAND)]
    assert workers_alive(data_dir) == 1
    assert liveness.alive(data_dir, WORKER) == [presence.name]
    for other in others:
        other.close()


def test_many_who_ask_at_once_never_judge_a_living_one_gone(
    data_dir: Path, presence: Presence, crew: Crew
) -> None:
    moment = time.monotonic() + 0.02
    asked = [(moment, data_dir, presence.name, 500)] * 8
    with ThreadPoolExecutor(4) as pool:
        inside = [pool.submit(chores.ask_often, *asked[0]) for _ in range(4)]
        assert crew.all(chores.ask_often, *asked) == [0] * 8
        assert [asker.result() for asker in inside] == [0] * 4


def test_p41_hazard_15_a_killed_process_is_gone_at_once_although_its_child_lives_on(
    data_dir: Path, presence: Presence
) -> None:
    with Crew(1) as crew:
        name, child = crew.all(chores.live, (data_dir,))[0]
        try:
            assert not is_gone(data_dir, name)
            assert workers_alive(data_dir) == 2
            crew.kill(0)
            assert is_running(child)
            assert is_gone(data_dir, name)
            assert workers_alive(data_dir) == 1
        finally:
            os.kill(child, signal.SIGKILL)


def test_many_who_ask_at_once_do_not_take_each_other_for_the_dead_one(
    data_dir: Path, crew: Crew
) -> None:
    with Crew(1) as mortal:
        name, child = mortal.all(chores.live, (data_dir,))[0]
        mortal.kill(0)
    os.kill(child, signal.SIGKILL)
    moment = time.monotonic() + 0.02
    assert crew.all(chores.ask_often, *[(moment, data_dir, name, 500)] * 8) == [500] * 8


def test_a_stopped_process_is_not_gone(data_dir: Path) -> None:
    with Crew(1) as crew:
        name, child = crew.all(chores.live, (data_dir,))[0]
        os.kill(child, signal.SIGKILL)
        crew.signal(0, signal.SIGSTOP)
        assert not is_gone(data_dir, name)
        assert sweep(data_dir) == 0


def test_cu09_a_sweep_takes_what_the_dead_left_and_nothing_else(
    data_dir: Path, presence: Presence
) -> None:
    (presence.scratch / "mine").write_text("mine")
    with Crew(2) as crew:
        (dead, first), (living, second) = crew.all(chores.live, (data_dir,), (data_dir,))
        for child in (first, second):
            os.kill(child, signal.SIGKILL)
        crew.kill(0)
        assert sweep(data_dir) == 1
        assert not (data_dir / "tmp" / dead).exists()
        assert not (data_dir / "run" / f"{dead}.lock").exists()
        assert (data_dir / "tmp" / living / "half-done").exists()
        assert (presence.scratch / "mine").exists()
        assert sweep(data_dir) == 0
        assert not is_gone(data_dir, living)


def test_a_sweep_beside_starting_and_ending_processes_takes_nothing_of_the_living(
    data_dir: Path, crew: Crew
) -> None:
    moment = time.monotonic() + 0.02
    for number in range(4, 8):
        crew.start(number, chores.sweep_often, moment, data_dir, 1500)
    taken = crew.all(chores.come_and_go, *[(moment, data_dir, 40)] * 4)
    for number in range(4, 8):
        crew.answer(number)
    assert taken == [0, 0, 0, 0]
    assert not list((data_dir / "run").iterdir())
    assert not list((data_dir / "tmp").iterdir())


def test_who_cannot_be_asked_is_not_proven_gone(data_dir: Path) -> None:
    """A lock file of another user, say: the worker's sweep must neither fall over it nor act."""
    name = f"{liveness.COMMAND}-aaaaaaaaaaaaaaa"
    (data_dir / "run" / f"{name}.lock").mkdir(parents=True)
    (data_dir / "tmp" / name).mkdir(parents=True)
    assert not is_gone(data_dir, name)
    assert sweep(data_dir) == 0
    assert (data_dir / "tmp" / name).is_dir()
