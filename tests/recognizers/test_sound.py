import wave
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.speech import RATE_HZ, Samples, silence, write_wav
from worker.recognizers.sound import NotConverted, Recording


def noise(seconds: float) -> Samples:
    drawn = np.random.default_rng(0).standard_normal(round(seconds * RATE_HZ))
    return (drawn * 3000).astype(np.int16)


def test_pieces_are_cut_at_the_quiet_place_near_their_end(tmp_path: Path) -> None:
    sound = np.concatenate([noise(40), silence(0.6), noise(40), silence(0.6), noise(15)])
    with Recording(write_wav(tmp_path / "a.wav", sound)) as recording:
        pieces = list(recording.sounds(0, 60))
    assert len(pieces) == 2
    assert 40 < pieces[0].end < 40.6
    assert all(before.end_sample == after.first_sample for before, after in pairwise(pieces))
    assert pieces[-1].end_sample == len(sound)
    joined = np.concatenate([piece.samples for piece in pieces])
    assert np.array_equal(np.round(joined * 32768).astype(np.int16), sound)


def test_cm17_who_goes_on_from_the_end_of_a_piece_gets_the_same_pieces(tmp_path: Path) -> None:
    with Recording(write_wav(tmp_path / "a.wav", noise(200))) as recording:
        at_once = [piece.end_sample for piece in recording.sounds(0, 30)]
        assert len(at_once) > 6
        for done, end in enumerate(at_once, 1):
            later = [piece.end_sample for piece in recording.sounds(end, 30)]
            assert later == at_once[done:]


@pytest.mark.parametrize("seconds", [0, 1 / RATE_HZ, 0.02])
def test_cm02_next_to_nothing_gives_at_most_one_piece(tmp_path: Path, seconds: float) -> None:
    sound = silence(seconds)
    with Recording(write_wav(tmp_path / "a.wav", sound)) as recording:
        assert [len(p.samples) for p in recording.sounds(0, 300)] == ([len(sound)] * bool(seconds))


def test_a_recording_cut_short_on_the_disk_is_refused(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", noise(10))
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(NotConverted):
        Recording(path)


@pytest.mark.parametrize("rate, channels, width", [(8000, 1, 2), (16000, 2, 2), (16000, 1, 1)])
def test_cm23_another_form_than_the_converters_is_refused(
    tmp_path: Path, rate: int, channels: int, width: int
) -> None:
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(bytes(3200))
    with pytest.raises(NotConverted):
        Recording(tmp_path / "a.wav")


@pytest.mark.parametrize("content", [b"", b"RIFF", b"no sound at all" * 10])
def test_what_is_no_wav_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(NotConverted):
        Recording(tmp_path / "a.wav")
