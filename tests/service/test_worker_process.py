"""The worker as a process: real files in, real text out, and SIGKILL in the middle of each step."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import later, utcnow
from app.job import Job, State
from app.migrate import DATABASE_NAME
from tests.processes import children_of, is_running, wait_until
from tests.service.house import ROOT, Service, service
from tests.speech import DATA, RATE_HZ, reference, samples, word_error_rate, write_wav
from tests.speech import long_speech as speech_of

END = (State.DONE, State.FAILED, State.DEAD)
pytestmark = pytest.mark.engine


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path / "data", RECOGNIZER__PIECE_SECONDS="30") as found:
        yield found


@pytest.fixture(scope="module")
def long_speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four minutes of speech, so that the tiny engine needs several pieces."""
    return write_wav(tmp_path_factory.mktemp("speech") / "long.wav", speech_of(240))


def once(running: Service, job: Job) -> None:
    """Each step succeeded exactly once, there is one text, and nothing is left behind."""
    outcomes = running.outcomes(job)
    for step in ("convert", "recognize", "check"):
        assert outcomes.count(f"{step} success") == 1, outcomes
    files = running.data_dir / "storage" / "files"
    row = running.queue.get(job.id)
    assert {path.name for path in files.iterdir()} == {row.source_file, row.file}
    scratch = running.data_dir / "tmp"
    wait_until(lambda: not [*scratch.glob("worker-*/step-*")], 10, "the scratch is empty")


def test_a_recording_becomes_text(running: Service) -> None:
    job = running.hand_in(DATA / "english.flac")
    running.start_worker()
    done = running.wait_for(job, *END)
    assert done.state is State.DONE, done
    text = running.queue.transcript(job.id)
    assert text is not None
    assert word_error_rate(reference("english"), text.text, "en") <= 0.10
    assert text.segments[0].start < 2
    assert done.attempts == 0
    assert done.duration_seconds == pytest.approx(
        len(samples(DATA / "english.flac")) / RATE_HZ, 0.01
    )
    once(running, job)


def test_p44_hazard_26_sigterm_gives_the_job_back_uncounted_and_leaves_no_child(
    running: Service, long_speech: Path
) -> None:
    job = running.hand_in(long_speech)
    worker = running.start_worker(PISAR_SERVER__SHUTDOWN_TIMEOUT="0.2")
    running.wait(lambda: (running.queue.get(job.id).progress or 0) > 0.1, 60, "some progress")
    children = children_of(worker.pid)
    assert children
    worker.terminate()
    assert worker.wait(20) == 0
    wait_until(lambda: not any(map(is_running, children)), 5, "its children ended")
    row = running.queue.get(job.id)
    assert (row.state, row.attempts, row.acquisition_id) == (State.TRANSCRIBE, 0, None)
    running.start_worker()
    assert running.wait_for(job, *END).state is State.DONE
    once(running, job)


def test_p41_cq01_killed_in_mid_convert_the_job_is_done_by_the_next_worker(
    running: Service, long_speech: Path
) -> None:
    job = running.hand_in(long_speech)
    killed_while(running, State.CREATED, job)
    outlived(running, job, "convert")


def test_p41_cq01_killed_in_mid_recognize_the_job_is_done_by_the_next_worker(
    running: Service, long_speech: Path
) -> None:
    job = running.hand_in(long_speech)
    killed_while(running, State.CONVERTED, job)
    outlived(running, job, "recognize")


def test_cm17_cq01_killed_in_mid_check_the_finished_pieces_are_not_done_again(
    running: Service, long_speech: Path
) -> None:
    job = running.hand_in(long_speech)
    worker = running.start_worker()
    running.wait(lambda: pieces(running, job) >= 2, 60, "two pieces")
    running.kill(worker)
    kept = stamps(running, job)
    assert len(kept) >= 2
    assert running.queue.get(job.id).state is State.TRANSCRIBE
    hold_back(running, State.TRANSCRIBE)
    second = running.start_worker()
    running.wait(lambda: len(stamps(running, job)) > len(kept), 60, "one more piece")
    assert stamps(running, job)[: len(kept)] == kept, "a kept piece was made again"
    let_go(running)
    outlived(running, job, "check", started=second)
    text = running.queue.transcript(job.id)
    assert text is not None
    starts = [segment.start for segment in text.segments]
    assert starts == sorted(starts)


def test_a_worker_killed_over_and_over_never_loses_or_doubles(
    running: Service, long_speech: Path
) -> None:
    jobs = [running.hand_in(path) for path in (DATA / "english-short.mp3", long_speech)]
    for _ in range(4):
        worker = running.start_worker()
        running.wait(
            lambda: any(running.queue.get(job.id).is_running for job in jobs), 60, "a claim"
        )
        running.kill(worker)
    running.start_worker()
    for job in jobs:
        assert running.wait_for(job, *END).state is State.DONE
        outcomes = running.outcomes(job)
        assert outcomes.count("check success") == 1


def test_p41_a_live_worker_never_loses_its_job_to_the_sweep(
    running: Service, long_speech: Path
) -> None:
    job = running.hand_in(long_speech)
    first = running.start_worker()
    running.wait(lambda: pieces(running, job) >= 1, 60, "a piece")
    running.start_worker()
    running.wait(lambda: "the worker is ready" in tail(running), 60, "the second is up")
    assert running.queue.get(job.id).is_running, "it ended before the second could take it"
    assert running.wait_for(job, *END).state is State.DONE
    assert not [line for line in running.outcomes(job) if "lost" in line]
    assert first.poll() is None


def test_p48_cancelling_ends_the_running_engine(running: Service, long_speech: Path) -> None:
    job = running.hand_in(long_speech)
    worker = running.start_worker()
    running.wait(lambda: pieces(running, job) >= 1, 60, "a piece")
    children = children_of(worker.pid)
    assert children
    running.queue.cancel(job.id, running.queue.get(job.id).updated)
    wait_until(lambda: not any(map(is_running, children)), 3, "the engine was killed")
    assert running.queue.get(job.id).error_code == "cancelled"
    other = running.hand_in(DATA / "english-short.mp3")
    assert running.wait_for(other, *END).state is State.DONE


def test_the_worker_loads_no_flask() -> None:
    code = (
        "import sys, worker.__main__; "
        "print([m for m in sys.modules if m.split('.')[0] in ('flask', 'werkzeug', 'flask_login')])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def killed_while(running: Service, state: State, job: Job) -> None:
    """Start a worker and SIGKILL it while it holds the job in a state it cannot leave."""
    hold_back(running, state)
    worker = running.start_worker()
    running.wait(
        lambda: running.queue.get(job.id).state is state and running.queue.get(job.id).is_running,
        60,
        f"the job is held in {state}",
    )
    running.kill(worker)
    let_go(running)
    row = running.queue.get(job.id)
    assert (row.state, row.attempts) == (state, 1)


def outlived(
    running: Service, job: Job, step: str, started: subprocess.Popen[bytes] | None = None
) -> None:
    if started is None:
        running.start_worker()
    assert running.wait_for(job, *END).state is State.DONE
    assert f"{step} worker_lost" in running.outcomes(job)
    attempts = [e.attempt for e in running.queue.events(job.id) if e.outcome == "success"]
    assert sorted(attempts) == [1, 1, 2], "the lost attempt was not counted"
    once(running, job)


def hold_back(running: Service, state: State) -> None:
    """Make the store refuse to let a job leave a state, as a full disk would."""
    execute(
        running,
        f"""CREATE TRIGGER held BEFORE UPDATE OF state ON transcribe_jobs
        WHEN OLD.state = '{state.value}' AND NEW.state <> OLD.state
        BEGIN SELECT RAISE(ABORT, 'held back by the test'); END""",
    )


def let_go(running: Service) -> None:
    execute(running, "DROP TRIGGER held")


def execute(running: Service, statement: str) -> None:
    connection = sqlite3.connect(running.data_dir / DATABASE_NAME, timeout=10)
    with connection:
        connection.execute(statement)
    connection.close()


def pieces(running: Service, job: Job) -> int:
    return len(stamps(running, job))


def stamps(running: Service, job: Job) -> list[tuple[int, str]]:
    """The number of each kept piece and when it was made."""
    with running.house.database.read() as connection:
        found = connection.execute(
            "SELECT number, created FROM transcript_pieces WHERE job = ? ORDER BY number", (job.id,)
        )
        return [tuple(row) for row in found]


def test_q05_the_claim_of_a_killed_worker_is_free_within_two_seconds(
    running: Service, long_speech: Path
) -> None:
    job = running.hand_in(long_speech)
    first = running.start_worker(PISAR_WORKER__POLL_INTERVAL="1")
    running.wait(lambda: pieces(running, job) >= 1, 60, "a piece")
    second = running.start_worker(PISAR_WORKER__POLL_INTERVAL="1")
    running.wait(lambda: "the worker is ready" in tail(running), 60, "the second is up")
    holder = running.queue.get(job.id).worker
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    wait_until(lambda: running.queue.get(job.id).worker not in (None, holder), 2, "taken over")
    assert second.poll() is None
    assert running.wait_for(job, *END).state is State.DONE


def tail(running: Service) -> str:
    """The log of the worker started last."""
    lines = running.log_path.read_text().splitlines()
    ready = [n for n, line in enumerate(lines) if "the worker is ready" in line]
    return lines[ready[1]] if len(ready) > 1 else ""


def test_p41_a_worker_never_takes_itself_for_gone(running: Service, long_speech: Path) -> None:
    """Somebody may have cleared data/run under it."""
    job = running.hand_in(long_speech)
    running.start_worker()
    running.wait(lambda: pieces(running, job) >= 1, 60, "a piece")
    for lock in (running.data_dir / "run").glob("worker-*.lock"):
        lock.unlink()
    assert running.wait_for(job, *END).state is State.DONE
    assert not [line for line in running.outcomes(job) if "lost" in line]


def test_s31_a_worker_empties_the_bin_and_leaves_what_is_not_due(tmp_path: Path) -> None:
    with service(tmp_path / "data") as running:
        gone, kept = (running.hand_in(DATA / "english.flac", name) for name in ("a", "b"))
        running.queue.delete(gone.id, later(utcnow(), -8 * 86400))
        running.queue.delete(kept.id, utcnow())
        running.start_worker()
        running.wait(lambda: running.queue.find_binned(gone.id) is None, 30, "the bin is emptied")
        assert running.queue.find_binned(kept.id)
        files = running.data_dir / "storage" / "files"
        assert {path.name for path in files.iterdir()} == {kept.source_file}
