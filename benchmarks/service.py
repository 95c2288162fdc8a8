"""Q11 through the whole service: `pisar transcribe` against the bare engine, side by side.

    python -m benchmarks.service --minutes 60

The recording is an MP3 of the joined recordings of tests/data, over and over. Ours starts cold:
the command, its worker, the conversion, the queue and the engine, to the printed text. The bare
engine recognizes the same sound, converted beforehand, in the same pieces and windows.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import av
import numpy as np

from app.settings import Settings
from benchmarks.recognize import Turn, bare_elsewhere, peak_mib, sound, told
from tests.processes import children_of
from tests.speech import RATE_HZ, Samples, write_wav
from worker.recognizers.model import find
from worker.recognizers.sound import Recording

_LOOK_SECONDS = 0.5


def main() -> None:
    """Print the figures of Q11 for the whole service."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    ours: list[Turn] = []
    bare: list[Turn] = []
    speech = sound(options.minutes * 60)
    with tempfile.TemporaryDirectory(prefix="pisar-bench-") as name:
        folder = Path(name)
        settings = Settings.model_validate({"storage": {"data_dir": folder / "data"}})
        mp3 = _write_mp3(folder / "talk.mp3", speech)
        wav = write_wav(folder / "talk.wav", speech)
        find(settings).prepare()
        with Recording(wav) as recording:
            pieces = recording.sounds(0, settings.recognizer.piece_seconds)
            borders = [(piece.first_sample, piece.end_sample) for piece in pieces]
        for _ in range(options.rounds):
            ours.append(told("Pisar", _whole_service(settings, mp3), options.minutes))
            bare.append(told("bare ", bare_elsewhere(settings, wav, borders), options.minutes))
    ratio = min(turn.seconds for turn in ours) / min(turn.seconds for turn in bare)
    print(f"wall time, service to bare engine, best of each: {ratio:.3f} (Q11: at most 1.05)")
    print(f"largest peak of one process: {max(turn.peak_mib for turn in ours):.0f} MiB (1229)")


def _write_mp3(path: Path, speech: Samples) -> Path:
    with av.open(str(path), "w", format="mp3") as container:
        stream = container.add_stream("libmp3lame", rate=RATE_HZ, layout="mono")
        stream.bit_rate = 64_000
        for first in range(0, len(speech), RATE_HZ):
            frame = av.AudioFrame.from_ndarray(
                speech[np.newaxis, first : first + RATE_HZ], format="s16", layout="mono"
            )
            frame.sample_rate = RATE_HZ
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def _whole_service(settings: Settings, recording: Path) -> Turn:
    environ = os.environ | {
        "PISAR_STORAGE__DATA_DIR": str(settings.storage.data_dir),
        "PISAR_WORKER__METRICS_PORT": "0",
    }
    began = time.perf_counter()
    command = subprocess.Popen(
        [sys.executable, "-m", "app", "transcribe", "--format", "json", str(recording)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    ended = threading.Event()
    peaks = [0.0]
    watcher = threading.Thread(target=_watch, args=(command.pid, ended, peaks))
    watcher.start()
    text, _ = command.communicate()
    seconds = time.perf_counter() - began
    ended.set()
    watcher.join()
    if command.returncode:
        raise SystemExit(f"pisar transcribe ended with {command.returncode}")
    return Turn(seconds, max(peaks), len(json.loads(text)["text"].split()))


def _watch(pid: int, ended: threading.Event, peaks: list[float]) -> None:
    """Note the peak memory of the command and of all that it started."""
    while not ended.wait(_LOOK_SECONDS):
        family, found = {pid}, {pid}
        while found:
            found = {child for parent in found for child in children_of(parent)} - family
            family |= found
        for member in family:
            try:
                peaks.append(peak_mib(member))
            except (OSError, ValueError):
                continue  # it has just ended


if __name__ == "__main__":
    main()
