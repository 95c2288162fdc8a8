from itertools import pairwise

import numpy as np
import pytest

from tests.speech import DATA, RATE_HZ, Samples, samples, silence
from worker.recognizers.windows import LONGEST_SECONDS, speech_windows

CLIP = samples(DATA / "english-phone.wav")


def windows_of(*parts: Samples) -> list[tuple[float, float]]:
    sound = np.concatenate(parts).astype(np.float32) / 32768
    return [(first / RATE_HZ, end / RATE_HZ) for first, end in speech_windows(sound)]


def test_cm03_silence_has_no_window() -> None:
    assert windows_of(silence(30)) == []


def test_speech_with_short_pauses_is_heard_at_once_and_a_long_one_parts_it() -> None:
    assert len(windows_of(CLIP, silence(0.5), CLIP)) == 1
    windows = windows_of(CLIP, silence(4), CLIP)
    assert len(windows) == 2
    assert windows[0][1] < windows[1][0] == pytest.approx(len(CLIP) / RATE_HZ + 4, abs=1)


def test_no_window_is_longer_than_the_engine_hears_at_once() -> None:
    windows = windows_of(*[CLIP] * 10)
    assert len(windows) > 3
    assert all(0 < end - first <= LONGEST_SECONDS for first, end in windows)
    assert all(before[1] <= after[0] for before, after in pairwise(windows))
