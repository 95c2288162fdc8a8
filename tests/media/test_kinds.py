"""Every kind of recording becomes the same WAV; every file without sound gets its verdict."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.errors import AppError
from app.queue.port import Converted
from app.settings import Settings
from app.storage.local import LocalStorage
from tests.media import recordings
from tests.media.desk import run, settings, work
from worker.steps.convert import ConvertStep

PLAYABLE = {
    "voice.ogg", "voice.oga", "voice_without_extension", "looks_like.mp3", "call.amr",
    "plain.mp3", "with_cover.mp3", "moov_at_end.m4a", "moov_front.m4a", "surround.m4a",
    "plain.webm", "plain.wav", "16k.wav", "phone_2ch_each_a_speaker.wav", "plain.flac",
    "with_sound.mp4",
}  # fmt: skip
"""What browsers play and seek in as it came; for the rest the converted copy is played (CM04)."""


@pytest.mark.parametrize("name", recordings.SOUND)
def test_cm06_cm10_any_kind_becomes_16_khz_mono(name: str, recorded: Path, tmp_path: Path) -> None:
    result = run(recorded / name, tmp_path / "claim")
    assert result.facts.seconds == pytest.approx(recordings.SECONDS, abs=0.05)
    assert np.sqrt(np.mean(result.samples.astype(float) ** 2)) > 1000
    assert result.facts.is_playable is (name in PLAYABLE)
    assert result.facts.has_video is (name == "with_sound.mp4")


@pytest.mark.parametrize("name", recordings.CUT)
def test_cm05_a_cut_recording_gives_what_it_holds(
    name: str, recorded: Path, tmp_path: Path
) -> None:
    result = run(recorded / name, tmp_path / "claim")
    assert result.facts.seconds == pytest.approx(4, abs=0.1)
    assert len(result.samples)


def test_cm05_a_header_that_claims_more_than_is_there_is_not_left_to_the_player(
    recorded: Path, tmp_path: Path
) -> None:
    facts = run(recorded / "cut.mp3", tmp_path / "claim").facts
    assert facts.header_seconds == pytest.approx(6, abs=0.05)
    assert not facts.is_playable


@pytest.mark.parametrize("name", recordings.NO_SOUND)
def test_cm01_cm02_cm05_a_file_without_sound_gets_a_verdict(
    name: str, recorded: Path, tmp_path: Path
) -> None:
    with pytest.raises(AppError) as caught:
        run(recorded / name, tmp_path / "claim")
    assert caught.value.code == recordings.NO_SOUND[name][1]
    assert caught.value.permanent
    assert name not in caught.value.detail


def test_cm02_twenty_milliseconds_are_a_recording(tmp_path: Path) -> None:
    recordings.tiny_20ms(tmp_path / "tiny.wav")
    result = run(tmp_path / "tiny.wav", tmp_path / "claim")
    assert len(result.samples) == 320


def test_cm03_silence_is_converted_like_any_sound(tmp_path: Path) -> None:
    recordings.silence_30s(tmp_path / "silence.wav")
    result = run(tmp_path / "silence.wav", tmp_path / "claim")
    assert result.facts.seconds == 30
    assert not result.samples.any()


def test_cm04_a_recording_without_a_duration_gets_the_decoded_one(
    recorded: Path, tmp_path: Path
) -> None:
    facts = run(recorded / "live.webm", tmp_path / "claim").facts
    assert facts.header_seconds is None
    assert facts.seconds == pytest.approx(6, abs=0.05)
    assert not facts.is_playable


@pytest.mark.parametrize("law", ["ulaw", "alaw"])
def test_cm23_telephone_sound_keeps_its_tone(law: str, recorded: Path, tmp_path: Path) -> None:
    assert run(recorded / f"phone_8k_{law}.wav", tmp_path / "claim").loudest_hz == [300]


def test_cm23_both_speakers_of_a_call_are_heard(recorded: Path, tmp_path: Path) -> None:
    result = run(recorded / "phone_2ch_each_a_speaker.wav", tmp_path / "claim")
    assert result.loudest_hz == [300, 700]


@pytest.mark.parametrize("channels", [3, 9, 24])
def test_a_multitrack_recording_is_mixed_down(channels: int, tmp_path: Path) -> None:
    source = tmp_path / "tracks.wav"
    recordings.multitrack(source, channels)
    assert run(source, tmp_path / "claim").loudest_hz == [300, 700]


def test_joined_recordings_of_different_rate_and_channels_are_read_through(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    recordings.encode(first, "libmp3lame", "mp3", recordings.tone(rate=44100), rate=44100)
    stereo = recordings.tone(rate=22050, hz=(600, 600))
    recordings.encode(second, "libmp3lame", "mp3", stereo, rate=22050, layout="stereo")
    joined = tmp_path / "joined.mp3"
    joined.write_bytes(first.read_bytes() + second.read_bytes())
    result = run(joined, tmp_path / "claim")
    assert result.facts.seconds == pytest.approx(12, abs=0.2)
    assert result.loudest_hz == [440, 600]


def test_sound_that_starts_after_the_picture_is_played_from_the_copy(tmp_path: Path) -> None:
    """Else every line of the text would be off by as much in the player."""
    late = tmp_path / "late.mp4"
    recordings.video_with_late_sound(late, 0.8)
    facts = run(late, tmp_path / "claim").facts
    assert facts.seconds == pytest.approx(6, abs=0.1)
    assert not facts.is_playable


def test_a_length_limit_is_kept_by_what_is_decoded(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(AppError) as caught:
        run(recorded / "live.webm", tmp_path / "claim", settings(max_duration=3))
    assert caught.value.code == "too_long"
    assert caught.value.permanent


def test_a_recording_of_just_the_limit_is_not_too_long(recorded: Path, tmp_path: Path) -> None:
    result = run(recorded / "moov_front.m4a", tmp_path / "claim", settings(max_duration=6))
    assert result.facts.seconds > 6


def test_a_length_limit_does_not_trust_the_header(recorded: Path, tmp_path: Path) -> None:
    data = bytearray((recorded / "plain.mp3").read_bytes())
    tag = max(data.find(b"Info"), data.find(b"Xing"))
    data[tag + 8 : tag + 12] = (38).to_bytes(4, "big")  # frames: one second
    liar = tmp_path / "liar.mp3"
    liar.write_bytes(data)
    with pytest.raises(AppError) as caught:
        run(liar, tmp_path / "claim", settings(max_duration=3))
    assert caught.value.code == "too_long"
    result = run(liar, tmp_path / "again")
    assert result.facts.header_seconds == pytest.approx(1, abs=0.1)
    assert result.facts.seconds == pytest.approx(6, abs=0.1)


def test_cu13_the_step_keeps_the_copy_under_a_name_of_its_own(
    recorded: Path, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    storage = LocalStorage(tmp_path / "data", scratch)
    draft = storage.draft(2**20)
    draft.write((recorded / "voice.ogg").read_bytes())
    source = storage.keep(draft)
    desk = work(scratch / "claim", file=source)
    result = ConvertStep(Settings(), storage).run(desk)
    assert result == Converted(file=result.file, duration_seconds=6.0, source_is_playable=True)
    assert result.file.file.endswith(".wav")
    assert result.file.media_type == "audio/wav"
    assert storage.local_path(result.file).stat().st_size == 44 + 6 * 32000 == result.file.size
    assert not list(desk.folder.iterdir())
    assert storage.exists(source)


def test_the_converter_loads_only_what_it_needs() -> None:
    script = (
        "import sys, worker.media.converter\n"
        "heavy = {'flask', 'pydantic', 'numpy', 'sqlite3', 'app.settings', 'prometheus_client'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True)
