"""cancel, delete, undelete, pause and resume over a real data directory (CQ02, CQ11, CQ20)."""

import json
from collections.abc import Iterator

import pytest

from app import liveness
from app.assembly import House, opened
from app.clock import utcnow
from app.errors import AppError
from app.job import Job, State, Step
from app.queue.port import Claim
from app.settings import load
from tests.cli.console import Console
from tests.cli.test_owner_console import failed, hand_in


@pytest.fixture
def house(console: Console) -> Iterator[House]:
    with opened(load(console.environ), liveness.COMMAND) as opened_house:
        yield opened_house


def claimed(house: House, job: Job) -> Claim:
    claim = house.queue.claim(
        State.CREATED, worker="w", lease_seconds=60, max_attempts=5, now=utcnow()
    )
    assert isinstance(claim, Claim)
    assert claim.job.id == job.id
    return claim


def test_cq02_cancel_tells_what_became_of_each(console: Console, house: House) -> None:
    over = failed(house, "over.mp3")
    running = hand_in(house, "running.mp3")
    held = claimed(house, running)
    answer = console.run("cancel", running.id, over.id, "nonsense")
    assert answer.out == f"{running.id}: cancelled in created\n"
    assert answer.err.splitlines() == [
        f"{over.id}: nothing done: the job is failed",
        "nonsense: there is no such job; `pisar jobs` lists them",
    ]
    assert answer.code == 1
    assert house.queue.get(running.id).error_code == "cancelled"
    assert not house.queue.fail(held, AppError("internal"), utcnow())


def test_cq02_delete_puts_into_the_bin_whatever_the_state(console: Console, house: House) -> None:
    over = failed(house, "over.mp3")
    running = hand_in(house, "running.mp3")
    claimed(house, running)
    answer = console.run("delete", over.id, running.id)
    assert answer.out.splitlines() == [
        f"{over.id}: in the bin",
        f"{running.id}: cancelled, in the bin",
    ]
    assert (answer.code, answer.err) == (0, "")
    assert console.run("jobs").out == ""
    binned = console.run("jobs", "--state", "bin").out.splitlines()
    assert [line.split()[0] for line in binned] == [running.id, over.id]
    told = json.loads(console.run("jobs", "--state", "bin", "--json").out)
    assert all(job["deleted"] for job in told)


def test_cq20_a_job_in_the_bin_is_found_by_no_other_command(console: Console, house: House) -> None:
    job = failed(house, "over.mp3")
    house.queue.delete(job.id, utcnow())
    for verb in ("show", "revive", "cancel", "delete"):
        answer = console.run(verb, job.id)
        assert (answer.code, answer.out) == (1, ""), verb
        assert "it is in the bin; `pisar undelete` brings it back" in answer.err, verb


def test_s31_undelete_brings_back_what_is_in_the_bin(console: Console, house: House) -> None:
    job = failed(house, "over.mp3")
    house.queue.delete(job.id, utcnow())
    answer = console.run("undelete", job.id)
    assert (answer.code, answer.out) == (0, f"{job.id}: failed\n")
    again = console.run("undelete", job.id, "nonsense")
    assert again.code == 1
    assert again.err.splitlines() == [
        f"{job.id}: nothing done: the job is not in the bin",
        "nonsense: there is no such job; `pisar jobs` lists them",
    ]


def test_s31_a_bin_of_no_days_gives_nothing_back(console: Console, house: House) -> None:
    job = failed(house, "over.mp3")
    house.queue.delete(job.id, utcnow())
    answer = console.run("undelete", job.id, environ={"PISAR_RETENTION__BIN_DAYS": "0"})
    assert answer.code == 1
    assert house.queue.find(job.id) is None


def test_a_pause_is_told_and_holds_until_it_is_ended(console: Console, house: House) -> None:
    assert console.run("pause", "convert").out == "convert: paused\n"
    assert console.run("pause", "convert").out.startswith("convert: paused already, since 20")
    assert list(house.queue.paused_steps()) == [Step.CONVERT]
    job = hand_in(house, "good.mp3")
    shown = console.run("show", job.id).out
    assert "step convert is paused; `pisar resume convert` ends that" in shown
    assert "in line" not in shown
    assert console.run("resume", "convert").out == "convert: resumed\n"
    assert console.run("resume", "convert").out == "convert: was not paused\n"
    assert "place 1 in line" in console.run("show", job.id).out


def test_cq11_revive_says_when_it_will_hardly_help(console: Console, house: House) -> None:
    spoilt, stopped = failed(house, "spoilt.mp3"), hand_in(house, "stopped.mp3")
    house.queue.cancel(stopped.id, utcnow())
    answer = console.run("revive", spoilt.id, stopped.id)
    assert answer.out == f"{spoilt.id}: created\n{stopped.id}: created\n"
    assert answer.err == (
        f"{spoilt.id}: the verdict was on the recording itself; expect the same again\n"
    )
    assert answer.code == 0
