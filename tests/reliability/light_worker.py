"""`python -m tests.reliability.light_worker`: the real worker process with steps that cost nothing.

Claims, leases, signals, bells and sweeps are the product's own; only the converter and the engine
are stood in for. What a recording does to its step is said by its name:

- `poison …` kills its worker with SIGKILL;
- `slow …` works on until it is told to stop;
- `heavy …` is checked in a child process of its own for a moment, `lasting …` for very long;
- `deaf …` works for half a second more after it was told;
- anything else is done at once.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import worker.__main__ as real
from app.job import Segment, State, Step, Transcript
from app.queue.port import Converted, Recognized, Started, StepResult
from app.settings import Settings
from app.storage.port import Storage
from tests.queue.hands import stored_file
from worker.child import Child
from worker.loop import Lane
from worker.work import Stopped, Work

LEDGER = "ledger"
HEAVY = "tests.reliability.heavy_child"
_CHILD_SECONDS = {"heavy": 0.2, "lasting": 600.0}
_CONVERTED_BYTES = 100_000
ROOM_BYTES = 1_000_000
"""What the convert step asks to be free, as the real one does with its sixteen times as many."""


def _lanes(settings: Settings, storage: Storage, *_: object) -> Sequence[Lane]:
    slots = settings.worker
    convert = Lane(
        State.CREATED, Step.CONVERT, Convert(settings, storage), slots.convert_lease, ROOM_BYTES
    )
    recognize = Lane(State.CONVERTED, Step.RECOGNIZE, Recognize(settings), slots.recognize_lease)
    check = Lane(State.TRANSCRIBE, Step.CHECK, Check(settings), slots.check_lease)
    return (
        [convert] * slots.convert_slots
        + [recognize] * slots.recognize_slots
        + [check] * slots.check_slots
    )


class _Light:
    """A step that writes down that it ran, then behaves as the recording's name says."""

    def __init__(self, settings: Settings) -> None:
        self._ledger = settings.storage.data_dir / LEDGER

    def behave(self, work: Work, step: Step) -> None:
        _write_down(self._ledger, f"{work.job.id} {step} {work.job.attempts} {os.getpid()}")
        match work.job.display_name.split()[0]:
            case "poison":
                os.kill(os.getpid(), signal.SIGKILL)
            case "slow":
                _work_until_told(work)
            case "deaf":
                _work_until_told(work, deaf_seconds=0.5)


class Convert(_Light):
    """Stands in for the converter; its copy is a real file where there is a recording."""

    def __init__(self, settings: Settings, storage: Storage) -> None:
        super().__init__(settings)
        self._storage = storage

    def run(self, work: Work) -> StepResult:
        self.behave(work, Step.CONVERT)
        if not self._storage.exists(work.file):
            # Handed in as a row alone, where files are not what the test is about.
            return Converted(stored_file(".wav"), 1.0, source_is_playable=True)
        copy = work.folder / "converted.wav"
        copy.write_bytes(bytes(_CONVERTED_BYTES))
        return Converted(self._storage.adopt(copy, ".wav", "audio/wav"), 1.0, True)


class Recognize(_Light):
    """Stands in for asking the engine."""

    def run(self, work: Work) -> StepResult:
        self.behave(work, Step.RECOGNIZE)
        return Started("light:1", "Light", 0)


class Check(_Light):
    """Stands in for the engine: the text is the name of the recording."""

    def run(self, work: Work) -> StepResult:
        self.behave(work, Step.CHECK)
        if seconds := _CHILD_SECONDS.get(work.job.display_name.split()[0]):
            _work_in_a_child(work, seconds)
        said = work.job.display_name
        return Recognized(Transcript(said, (Segment(0.0, 1.0, said),)), "en")


def _work_until_told(work: Work, deaf_seconds: float = 0) -> None:
    while not work.stopped():
        work.report(0.5)
        time.sleep(0.02)
    time.sleep(deaf_seconds)
    raise Stopped


def _work_in_a_child(work: Work, seconds: float) -> None:
    with Child.start(HEAVY, [str(seconds)]) as child:
        next(child.messages(timeout_seconds=900, stall_seconds=900, stopped=work.stopped))


def _write_down(ledger: Path, line: str) -> None:
    with ledger.open("a", encoding="ascii") as file:
        file.write(f"{line}\n")


if __name__ == "__main__":
    real._lanes = _lanes
    sys.exit(real.main())
