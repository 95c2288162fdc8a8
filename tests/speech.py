"""Real speech for tests: the recordings of tests/data as samples, and how well a text matches."""

import re
import wave
from pathlib import Path

import av
import jiwer
import numpy as np
from num2words import num2words
from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
RATE_HZ = 16_000

Samples = NDArray[np.int16]


def samples(path: Path, form: str | None = None) -> Samples:
    """The first sound track of a media file: 16 kHz, mono, s16."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE_HZ)
    parts: list[Samples] = []
    with av.open(str(path), format=form) as container:
        for frame in container.decode(audio=0):
            frame.pts = None
            parts += [part.to_ndarray().reshape(-1) for part in resampler.resample(frame)]
        parts += [part.to_ndarray().reshape(-1) for part in resampler.resample(None)]
    return np.concatenate(parts)


def silence(seconds: float) -> Samples:
    """Digital silence."""
    return np.zeros(round(seconds * RATE_HZ), np.int16)


def long_speech(seconds: float) -> Samples:
    """English speech of about that length: one recording over and over, with pauses."""
    once = np.concatenate([samples(DATA / "english.flac"), silence(1.0)])
    return np.tile(once, max(1, round(seconds * RATE_HZ / len(once))))


def write_wav(path: Path, sound: Samples) -> Path:
    """Write samples as the converter does."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE_HZ, 0, "NONE", ""))
        file.writeframes(sound.tobytes())
    return path


def reference(name: str) -> str:
    """What is said in a recording of tests/data, by the name of its text."""
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


def word_error_rate(said: str, heard: str, language: str) -> float:
    """Words wrong, missing or invented, to the words said; spelling and numbers aside."""
    return float(jiwer.wer(_plain(said, language), _plain(heard, language) or "<nothing>"))


def _plain(text: str, language: str) -> str:
    text = text.lower().replace("ё", "е")
    text = re.sub(r"\bmr\b\.?", "mister", text)
    text = re.sub(r"\bip\b", "ай пи", text)
    text = re.sub(r"\d+", lambda digits: f" {num2words(int(digits[0]), lang=language)} ", text)
    return " ".join(re.sub(r"[^\w]", " ", text.replace("'", "")).split())
