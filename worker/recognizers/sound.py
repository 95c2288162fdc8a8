"""A converted recording, read piece by piece: the memory it takes does not grow with its length."""

import wave
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

RATE_HZ = 16_000
_TO_UNIT = np.float32(1 / 32768)
_CUT_WINDOW = RATE_HZ // 5
"""200 ms: shorter than a pause between sentences, longer than one inside a word."""
_CUT_SEARCH_SECONDS = 30.0


class NotConverted(ValueError):  # noqa: N818 - says what the file is
    """The file is no 16 kHz mono s16 WAV, or not the whole of one."""


@dataclass(frozen=True)
class Sound:
    """A stretch of the recording: float32 samples of -1 to 1, and where it begins."""

    first_sample: int
    samples: NDArray[np.float32]

    @property
    def start(self) -> float:
        """Seconds from the start of the recording to the first sample."""
        return self.first_sample / RATE_HZ

    @property
    def end_sample(self) -> int:
        """The sample after the last one."""
        return self.first_sample + len(self.samples)

    @property
    def end(self) -> float:
        """Seconds from the start of the recording to the end of this stretch."""
        return self.end_sample / RATE_HZ


class Recording:
    """An open 16 kHz mono s16 WAV; anything else raises NotConverted."""

    def __init__(self, path: Path) -> None:
        try:
            self._wav = wave.open(str(path), "rb")  # noqa: SIM115 - closed by close()
        except (wave.Error, EOFError) as error:
            raise NotConverted from error
        form = self._wav.getframerate(), self._wav.getnchannels(), self._wav.getsampwidth()
        self.total_samples = self._wav.getnframes()
        if form != (RATE_HZ, 1, 2) or not self._reaches_its_end():
            self._wav.close()
            raise NotConverted

    def sounds(self, from_sample: int, piece_seconds: float) -> Iterator[Sound]:
        """The pieces from a sample on, each about piece_seconds long, cut at quiet places.

        A piece depends only on where it begins, so whoever goes on from the end of a piece
        gets the same ones as who never stopped.
        """
        while from_sample < self.total_samples:
            samples = self._read(from_sample, round(piece_seconds * RATE_HZ))
            if from_sample + len(samples) < self.total_samples:
                samples = samples[: _quiet_place(samples)]
            sound = Sound(from_sample, samples * _TO_UNIT)
            yield sound
            from_sample = sound.end_sample

    def close(self) -> None:
        """Close the file."""
        self._wav.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _reaches_its_end(self) -> bool:
        """False when the file is shorter than its header says: words would be lost silently."""
        return not self.total_samples or len(self._read(self.total_samples - 1, 1)) == 1

    def _read(self, from_sample: int, count: int) -> NDArray[np.int16]:
        self._wav.setpos(from_sample)
        return np.frombuffer(self._wav.readframes(count), dtype="<i2")


def _quiet_place(samples: NDArray[np.int16]) -> int:
    """Where to cut: the middle of the quietest window near the end, the later of equals."""
    search = min(len(samples) // 2, round(_CUT_SEARCH_SECONDS * RATE_HZ))
    windows = search // _CUT_WINDOW
    near_end = samples[len(samples) - windows * _CUT_WINDOW :].astype(np.float32)
    energy = (near_end.reshape(windows, _CUT_WINDOW) ** 2).mean(axis=1)
    quietest = windows - 1 - int(energy[::-1].argmin())
    return len(samples) - (windows - quietest) * _CUT_WINDOW + _CUT_WINDOW // 2
