"""SIGTERM under load: each worker ends in time, gives everything back, and leaves no process."""

import subprocess
import time
from pathlib import Path

from app.clock import utcnow
from app.job import ACTIVE, Job, Source, State
from app.queue.port import NewJob
from tests.processes import children_of, is_running, wait_until
from tests.queue.hands import stored_file
from tests.reliability import light_worker
from tests.service.house import Service, service

LIGHT = light_worker.__name__
SOFT, HARD = 0.5, 6.0
BUSY = {State.CREATED: "slow", State.CONVERTED: "slow", State.TRANSCRIBE: "lasting"}
"""What keeps a step of each state busy until it is told to stop."""


def stop(workers: "list[subprocess.Popen[bytes]]") -> None:
    """SIGTERM to all at once; they must end in order, within the two timeouts, with their like."""
    children = {child for worker in workers for child in children_of(worker.pid)}
    begun = time.monotonic()
    for worker in workers:
        worker.terminate()
    for worker in workers:
        assert worker.wait(HARD + 5) == 0
    assert time.monotonic() - begun < HARD
    wait_until(lambda: not any(map(is_running, children)), 2, "no child outlives them")


def held_by(running: Service) -> dict[str, int]:
    """How many jobs each worker holds."""
    with running.house.database.read() as connection:
        found = connection.execute(
            "SELECT worker, count(*) FROM transcribe_jobs"
            " WHERE acquisition_id IS NOT NULL GROUP BY worker"
        )
        return {row[0]: row[1] for row in found}


def nothing_lost(running: Service, jobs: list[Job]) -> None:
    """Every claim was given back, and no attempt is spent on any."""
    assert held_by(running) == {}
    for job in jobs:
        row = running.queue.get(job.id)
        assert (row.attempts, row.delay_time) == (0, None), row
        assert not {"worker_lost", "failure", "dead"} & {
            event.outcome for event in running.queue.events(job.id)
        }
    assert not [*(running.data_dir / "tmp").glob("worker-*")]


def test_q27_three_workers_stop_with_every_slot_at_work(quick_dir: Path) -> None:
    slots = {"WORKER__CONVERT_SLOTS": "2", "WORKER__CHECK_SLOTS": "2"}
    timeouts = {"SERVER__SHUTDOWN_TIMEOUT": str(SOFT), "SERVER__FORCE_SHUTDOWN_TIMEOUT": str(HARD)}
    with service(quick_dir, tiny=False, **slots, **timeouts) as running:
        jobs = [
            _enqueue(running, f"{how} {n}", state) for state, how in BUSY.items() for n in range(10)
        ]
        workers = [running.start_worker(LIGHT) for _ in range(3)]
        running.wait(lambda: sorted(held_by(running).values()) == [5] * 3, 30, "all are busy")
        running.wait(
            lambda: all(len(children_of(worker.pid)) == 2 for worker in workers), 30, "in children"
        )
        stop(workers)
        nothing_lost(running, jobs)
        assert {running.queue.get(job.id).state for job in jobs} == set(ACTIVE)
        second = running.start_worker(LIGHT)
        running.wait(lambda: list(held_by(running).values()) == [5], 30, "they are handed out anew")
        stop([second])
        nothing_lost(running, jobs)


def test_q27_hazard_26_a_second_sigterm_takes_nothing_away(quick_dir: Path) -> None:
    """Whoever presses Ctrl-C twice: what is being given back is still given back."""
    with service(quick_dir, tiny=False, SERVER__SHUTDOWN_TIMEOUT="0.1") as running:
        job = _enqueue(running, "deaf one")
        worker = running.start_worker(LIGHT)
        running.wait(lambda: running.queue.get(job.id).is_running, 30, "it is worked on")
        worker.terminate()
        running.wait(lambda: _stops(worker), 5, "the second comes in the middle of the stop")
        worker.terminate()
        assert worker.wait(20) == 0
        nothing_lost(running, [job])


def _stops(worker: "subprocess.Popen[bytes]") -> bool:
    assert worker.poll() is None, "it ended before the second signal"
    # The lanes without work end first; that of the deaf step goes on.
    return len([*Path(f"/proc/{worker.pid}/task").iterdir()]) < 4


def _enqueue(running: Service, name: str, state: State = State.CREATED) -> Job:
    """A row alone, as if it had come as far as that state."""
    job = running.queue.enqueue(NewJob(stored_file(), Source.API, name), utcnow()).job
    with running.house.database.transaction() as connection:
        connection.execute("UPDATE transcribe_jobs SET state = ? WHERE id = ?", (state, job.id))
    return job
