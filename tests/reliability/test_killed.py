"""Workers that are killed: at random, by their own recording, and in the middle of each step."""

import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

from app.clock import utcnow
from app.job import Job, Source, State
from app.queue.port import NewJob
from tests.processes import wait_until
from tests.queue.hands import stored_file
from tests.reliability import light_worker
from tests.service.house import Service, service

LIGHT = light_worker.__name__
JOBS = 1000
KILLS = 8


def hand_in(running: Service, name: str) -> Job:
    """A row alone: what is in the file does not matter to light steps."""
    new = NewJob(stored_file(), Source.TELEGRAM, name, sender="telegram:7", tg_chat_id=7)
    return running.queue.enqueue(new, utcnow()).job


def ledger(running: Service, job: Job) -> list[str]:
    """The steps that were begun with a job: step and attempt."""
    path = running.data_dir / light_worker.LEDGER
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return [line.split(maxsplit=1)[1].rsplit(maxsplit=1)[0] for line in lines if job.id in line]


def test_cq03_a_thousand_jobs_outlive_random_kills(quick_dir: Path) -> None:
    chance = random.Random(3)  # noqa: S311 - the moments only have to differ
    with service(quick_dir, tiny=False) as running:
        workers = [running.start_worker(LIGHT) for _ in range(2)]
        jobs: list[Job] = []
        for number in range(KILLS):
            jobs += [hand_in(running, f"talk {n}") for n in range(JOBS // KILLS)]
            moment = time.monotonic() + chance.uniform(0, 0.3)
            running.wait(
                lambda moment=moment: time.monotonic() > moment and is_holding(running),  # type: ignore[misc]
                60,
                "a claim to be killed in",
            )
            running.kill(workers[number % 2])
            workers[number % 2] = running.start_worker(LIGHT)
        running.wait(lambda: sum(ended(running).values()) == JOBS, 90, "an end for each")
        assert ended(running) == {State.DONE: JOBS}
        told = written(running)
    assert told["lost"] > 0, "no kill met a claim"
    assert told["successes"] == {(job.id, step): 1 for job in jobs for step in STEPS}
    assert told["texts"] == told["replies"] == {job.id: 1 for job in jobs}
    assert told["integrity"] == "ok"


STEPS = ("convert", "recognize", "check")


def is_holding(running: Service) -> bool:
    with running.house.database.read() as connection:
        found = connection.execute(
            "SELECT count(*) FROM transcribe_jobs WHERE acquisition_id IS NOT NULL"
        )
        return bool(found.fetchone()[0])


def ended(running: Service) -> dict[State, int]:
    return {state: n for state, n in running.queue.counts().items() if n and state.is_end}


def written(running: Service) -> dict[str, object]:
    """What stands in the store about all jobs together."""
    with running.house.database.read() as connection:

        def counted(statement: str) -> dict[object, int]:
            rows = [tuple(row) for row in connection.execute(statement)]
            return dict(Counter(row[0] if len(row) == 1 else row for row in rows))

        return {
            "successes": counted("SELECT job, step FROM job_events WHERE outcome = 'success'"),
            "texts": counted("SELECT job FROM transcripts"),
            "replies": counted("SELECT job FROM replies"),
            "lost": sum(
                counted("SELECT job FROM job_events WHERE outcome = 'worker_lost'").values()
            ),
            "integrity": connection.execute("PRAGMA integrity_check").fetchone()[0],
        }


def test_cq06_hazard_17_a_job_that_kills_its_worker_dies_and_others_are_served_in_between(
    quick_dir: Path,
) -> None:
    with service(quick_dir, tiny=False, WORKER__RETRY_CAP="0.5") as running:
        poison, other_poison = hand_in(running, "poison one"), hand_in(running, "poison two")
        others = [hand_in(running, f"talk {n}") for n in range(10)]
        worker = until_killed(running)
        assert running.queue.get(poison.id).attempts == 1

        # Cancelled between two tries, while it is still held by a worker that is no more.
        until_killed(running, worker_after=worker)
        cancelled = running.queue.cancel(other_poison.id, utcnow())
        assert (cancelled.state, cancelled.error_code) == (State.FAILED, "cancelled")
        tries = len(ledger(running, other_poison))

        worker = running.start_worker(LIGHT)
        while running.queue.get(poison.id).state.is_active:
            wait_until(
                lambda worker=worker: (  # type: ignore[misc]
                    worker.poll() is not None or running.queue.get(poison.id).state.is_end
                ),
                60,
                "the next kill or the end",
            )
            if worker.poll() is not None:
                worker = running.start_worker(LIGHT)
        dead = running.queue.get(poison.id)
        assert (dead.state, dead.error_code, dead.attempts) == (State.DEAD, "worker_lost", 6)
        assert ledger(running, poison) == [f"convert {n}" for n in range(1, 6)]
        history = running.outcomes(poison)
        assert history == ["convert accepted", *["convert worker_lost"] * 5, "convert dead"]
        for job in others:
            assert running.wait_for(job, State.DONE, State.DEAD).state is State.DONE
        died = running.queue.events(poison.id)[-1].time
        assert all(running.queue.events(job.id)[-1].time < died for job in others)
        assert len(ledger(running, other_poison)) == tries, "a cancelled job was worked on"


def until_killed(
    running: Service, worker_after: "subprocess.Popen[bytes] | None" = None
) -> "subprocess.Popen[bytes]":
    """Start a worker and see a recording kill it."""
    assert worker_after is None or worker_after.poll() is not None
    worker = running.start_worker(LIGHT)
    assert worker.wait(30) == -signal.SIGKILL
    return worker
