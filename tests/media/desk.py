"""A claim's desk for the converter: a folder, a Work, and what came out."""

import wave
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np

from app.job import Job, StoredFile
from app.settings import Settings
from tests.media.recordings import Samples
from worker.media.facts import Facts
from worker.steps.convert import CONVERTER, convert
from worker.work import Work

JOB = cast(Job, SimpleNamespace(id="job000000000001"))


@dataclass(frozen=True)
class Converted:
    """What the converter made of a recording."""

    path: Path
    facts: Facts

    @property
    def samples(self) -> Samples:
        """The sound, read by Python's own reader: a wrong header fails here."""
        with wave.open(str(self.path)) as file:
            assert file.getparams()[:3] == (1, 2, 16000)
            assert file.getnframes() == round(self.facts.seconds * 16000)
            assert self.path.stat().st_size == 44 + 2 * file.getnframes()
            return np.frombuffer(file.readframes(file.getnframes()), np.int16)

    @property
    def loudest_hz(self) -> list[int]:
        """The tones that stand out, rounded to 10 Hz, in rising order."""
        sound = self.samples.astype(float)
        spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
        strong = np.flatnonzero(spectrum > spectrum.max() * 0.4) * 16000 / len(sound)
        return sorted({round(hz / 10) * 10 for hz in strong})


def work(
    folder: Path,
    *,
    file: StoredFile | None = None,
    report: Callable[[float], None] = lambda progress: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Work:
    """What the loop would hand to the step."""
    folder.mkdir(exist_ok=True)
    return Work(
        job=JOB,
        file=cast(StoredFile, file),
        folder=folder,
        report=report,
        keep=lambda piece, progress: None,
        pieces=lambda engine: [],
        intend=lambda intent: None,
        stopped=stopped,
    )


def run(
    source: Path,
    folder: Path,
    settings: Settings | None = None,
    *,
    converter: str = CONVERTER,
    report: Callable[[float], None] = lambda progress: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Converted:
    """Convert a file as the step does; nothing but the WAV may be left in the folder."""
    desk = work(folder, report=report, stopped=stopped)
    path, facts = convert(desk, source, settings or Settings(), converter)
    assert list(folder.iterdir()) == [path]
    return Converted(path, facts)


def settings(**limits: float) -> Settings:
    """The defaults with other limits of the worker, and max_duration of the intake."""
    intake = {key: limits.pop(key) for key in ("max_duration",) if key in limits}
    return Settings.model_validate({"worker": limits, "intake": intake})
