"""Q11: the embedded recognizer against the bare engine in the same configuration, side by side.

    python -m benchmarks.recognize --minutes 60

Both recognize the same recording: the joined recordings of tests/data over and over, with
pauses. The bare engine is faster-whisper alone in a process of its own: same model, threads,
priority, pieces and windows. They take turns, since other work on the machine comes and goes.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import wave
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from faster_whisper import BatchedInferencePipeline, WhisperModel

from app.job import Piece
from app.settings import Settings
from tests.processes import children_of
from tests.recognizers.desk import Desk
from tests.speech import DATA, RATE_HZ, Samples, samples, silence
from worker.recognizers.embedded import EmbeddedRecognizer
from worker.recognizers.model import find
from worker.recognizers.windows import speech_windows

_PAUSE_SECONDS = 4
_KIB_PER_MIB = 1024
_NICENESS = 10


@dataclass(frozen=True)
class Turn:
    """One recognition of the whole recording, the loading of the model included."""

    seconds: float
    peak_mib: float
    words: int


def main() -> None:
    """Print the figures of Q11."""
    options = _options()
    if options.bare:
        print(json.dumps(asdict(_bare(**json.loads(options.bare)))))
        return
    ours: list[Turn] = []
    bare: list[Turn] = []
    speech = sound(options.minutes * 60)
    with tempfile.TemporaryDirectory(prefix="pisar-bench-") as folder:
        settings = _settings(Path(folder), options.threads)
        find(settings).prepare()
        for _ in range(options.rounds):
            turn, desk = _ours(settings, Path(folder), speech)
            ours.append(told("Pisar", turn, options.minutes))
            bare.append(
                told(
                    "bare ",
                    bare_elsewhere(settings, desk.audio.path, [_border(p) for p in desk.kept]),
                    options.minutes,
                )
            )
    ratio = min(turn.seconds for turn in ours) / min(turn.seconds for turn in bare)
    print(f"wall time, Pisar to bare engine, best of each: {ratio:.3f} (Q11: at most 1.05)")
    print(f"peak memory of the engine: {max(turn.peak_mib for turn in ours):.0f} MiB")
    print(f"peak memory of this process, sound included: {_own_peak_mib():.0f} MiB")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--bare", help=argparse.SUPPRESS)
    return parser.parse_args()


def _settings(folder: Path, threads: int) -> Settings:
    return Settings.model_validate(
        {"storage": {"data_dir": folder}, "recognizer": {"threads": threads}}
    )


def sound(seconds: float) -> Samples:
    """Speech of that length: the recordings of tests/data over and over, with pauses."""
    pause = silence(_PAUSE_SECONDS)
    clips = [samples(DATA / name) for name in ("english.flac", "russian.ogg")]
    loop = np.concatenate([part for clip in clips for part in (clip, pause)])
    return np.resize(loop, round(seconds * RATE_HZ))


def told(who: str, turn: Turn, minutes: float) -> Turn:
    """Print a turn; gives it back."""
    factor = turn.seconds / (minutes * 60)
    print(
        f"{who}  {turn.seconds:7.1f} s  {factor:.4f} of the sound  "
        f"peak {turn.peak_mib:.0f} MiB  {turn.words} words",
        flush=True,
    )
    return turn


def _ours(settings: Settings, folder: Path, sound: Samples) -> tuple[Turn, Desk]:
    recognizer = EmbeddedRecognizer(settings)
    desk = Desk.with_sound(recognizer, folder, sound)
    others = children_of()
    peaks = [0.0]
    desk.on_keep = lambda: peaks.extend(peak_mib(pid) for pid in children_of() - others)
    began = time.perf_counter()
    result = desk.recognize()
    seconds = time.perf_counter() - began
    recognizer.close()
    return Turn(seconds, max(peaks), len(result.transcript.text.split())), desk


def peak_mib(pid: int) -> float:
    """The most memory that a living process has used."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / _KIB_PER_MIB


def _own_peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB


def bare_elsewhere(settings: Settings, wav: Path, borders: list[tuple[int, int]]) -> Turn:
    """The same pieces in a fresh process, whose imports are not counted, while ours are."""
    request = {
        "model": str(find(settings).folder),
        "audio": str(wav),
        "threads": settings.recognizer.threads or len(os.sched_getaffinity(0)),
        "borders": borders,
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.recognize", "--bare", json.dumps(request)],
        stdout=subprocess.PIPE,
        check=True,
    )
    return Turn(**json.loads(done.stdout))


def _border(piece: Piece) -> tuple[int, int]:
    return round(piece.start * RATE_HZ), round(piece.end * RATE_HZ)


def _bare(model: str, audio: str, threads: int, borders: list[tuple[int, int]]) -> Turn:
    os.nice(_NICENESS)
    began = time.perf_counter()
    words = 0
    pipeline = BatchedInferencePipeline(
        WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=threads)
    )
    with wave.open(audio) as file:
        for first, end in borders:
            data = np.frombuffer(file.readframes(end - first), np.int16)
            unit = data.astype(np.float32) / 32768
            segments, _ = pipeline.transcribe(
                unit,
                clip_timestamps=[
                    {"start": start / RATE_HZ, "end": stop / RATE_HZ}
                    for start, stop in speech_windows(unit)
                ],
                batch_size=4,
                beam_size=5,
                without_timestamps=True,
                word_timestamps=True,
                multilingual=True,
            )
            words += sum(len(segment.text.split()) for segment in segments)
    return Turn(time.perf_counter() - began, _own_peak_mib(), words)


if __name__ == "__main__":
    main()
