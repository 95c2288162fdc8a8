"""The built-in model on real human speech: is the text right, and is nothing invented?"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from app.job import Segment
from tests.recognizers.desk import Desk, settings_for
from tests.speech import DATA, RATE_HZ, Samples, reference, samples, silence, word_error_rate
from worker.recognizers.embedded import EmbeddedRecognizer

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRecognizer]:
    recognizer = EmbeddedRecognizer(settings_for(tmp_path_factory.mktemp("service")))
    yield recognizer
    recognizer.close()


def in_good_order(segments: tuple[Segment, ...], seconds: float) -> bool:
    edges = [0.0, *(edge for s in segments for edge in (s.start, s.end)), seconds]
    return all(before <= after for before, after in pairwise(edges)) and all(
        s.start < s.end and s.text for s in segments
    )


@pytest.mark.parametrize(
    "file, text, language, most_errors",
    [("english.flac", "english", "en", 0.05), ("russian.ogg", "russian", "ru", 0.15)],
)
def test_real_speech_becomes_its_text(
    whisper: EmbeddedRecognizer,
    tmp_path: Path,
    file: str,
    text: str,
    language: str,
    most_errors: float,
) -> None:
    desk = Desk.with_sound(whisper, tmp_path, samples(DATA / file))
    result = desk.recognize()
    assert word_error_rate(reference(text), result.transcript.text, language) <= most_errors
    assert result.language == language
    assert in_good_order(result.transcript.segments, desk.audio.duration_seconds)
    assert desk.reported == sorted(desk.reported)
    assert desk.reported[-1] == 1.0


def test_a_recording_that_changes_its_language_is_neither_translated_nor_cut(
    whisper: EmbeddedRecognizer, tmp_path: Path
) -> None:
    pause = 4
    # More than 30 s, so that who listens to the beginning alone takes it all for English.
    clips = [samples(DATA / "english.flac"), silence(0.7), samples(DATA / "english-short.mp3")]
    english, russian = np.concatenate(clips), samples(DATA / "russian.ogg")
    said = reference("english") + reference("english").splitlines()[1]
    sound = np.concatenate([english, silence(pause), russian])
    result = Desk.with_sound(whisper, tmp_path, sound).recognize()
    border = len(english) / RATE_HZ + pause / 2
    heard = {
        "en": " ".join(s.text for s in result.transcript.segments if s.start < border),
        "ru": " ".join(s.text for s in result.transcript.segments if s.start >= border),
    }
    assert word_error_rate(said, heard["en"], "en") <= 0.05
    assert word_error_rate(reference("russian"), heard["ru"], "ru") <= 0.15
    assert result.language == "ru", "the language of most of the speech"


def test_a_chosen_language_is_obeyed(whisper: EmbeddedRecognizer, tmp_path: Path) -> None:
    desk = Desk.with_sound(whisper, tmp_path, samples(DATA / "russian-short.m4a"), language="ru")
    result = desk.recognize()
    said = reference("russian").splitlines()[0]
    assert word_error_rate(said, result.transcript.text, "ru") <= 0.15
    assert result.language == "ru"


def test_cm23_telephone_sound_becomes_its_text(whisper: EmbeddedRecognizer, tmp_path: Path) -> None:
    result = Desk.with_sound(whisper, tmp_path, samples(DATA / "english-phone.wav")).recognize()
    said = " ".join(reference("english").splitlines()[1:3])
    assert word_error_rate(said, result.transcript.text, "en") <= 0.10


def tone(seconds: float) -> Samples:
    turns = np.arange(round(seconds * RATE_HZ)) * 440 / RATE_HZ
    return (np.sin(2 * np.pi * turns) * 9000).astype(np.int16)


def noise(seconds: float) -> Samples:
    drawn = np.random.default_rng(0).standard_normal(round(seconds * RATE_HZ))
    return (drawn * 1600).astype(np.int16)


@pytest.mark.parametrize(
    "sound", [silence(30), noise(30), tone(30)], ids=["silence", "noise", "tone"]
)
def test_cm03_no_words_are_invented_where_nobody_speaks(
    whisper: EmbeddedRecognizer, tmp_path: Path, sound: Samples
) -> None:
    result = Desk.with_sound(whisper, tmp_path, sound).recognize()
    assert result.transcript.segments == ()
    assert result.transcript.text == ""
    assert result.language is None


@pytest.mark.parametrize("seconds", [0, 1 / RATE_HZ, 0.02])
def test_cm02_next_to_nothing_is_no_speech(
    whisper: EmbeddedRecognizer, tmp_path: Path, seconds: float
) -> None:
    result = Desk.with_sound(whisper, tmp_path, silence(seconds)).recognize()
    assert (result.transcript.text, result.transcript.segments) == ("", ())
