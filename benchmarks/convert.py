"""Q12: converting an hour to WAV through the whole service's step, against bare readers.

    python -m benchmarks.convert --minutes 60 --rounds 3

The recording is the English of tests/data over and over, as mp3, m4a (AAC) and ogg (Opus), made
here. Ours is worker.steps.convert: the start of the child and its confinement included. Bare
PyAV is the straightforward loop: decode, resample, encode and mux WAV in a process that is
already running. Both, and the ffmpeg command where it is installed, take turns; what counts is
CPU seconds (user and system, children included), since they hardly depend on what else runs.
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np

from tests.media.desk import run, settings
from tests.media.recordings import Samples, encode
from tests.speech import DATA, samples

_KINDS = {
    "mp3": ("libmp3lame", "mp3", 44_100, 128_000),
    "m4a": ("aac", "ipod", 44_100, 128_000),
    "ogg": ("libopus", "ogg", 48_000, 32_000),
}

Turn = Callable[[Path, Path], None]


def main() -> None:
    """Print the figures of Q12."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    turns: dict[str, Turn] = {"ours": _ours, "PyAV": _bare}
    if shutil.which("ffmpeg"):
        turns["ffmpeg"] = _ffmpeg
    with tempfile.TemporaryDirectory(prefix="pisar-bench-") as name:
        folder = Path(name)
        for kind in _KINDS:
            source = _recording(folder, kind, options.minutes * 60)
            _compare(kind, source, folder, turns, options.rounds)
            source.unlink()


def _compare(kind: str, source: Path, folder: Path, turns: dict[str, Turn], rounds: int) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(rounds):
        for name, turn in turns.items():
            target = folder / f"{name}-{number}"
            seconds[name].append(_cpu_seconds(lambda turn=turn, to=target: turn(source, to)))
            shutil.rmtree(target) if target.is_dir() else target.unlink()
    median = {name: statistics.median(values) for name, values in seconds.items()}
    figures = "  ".join(f"{name} {value:.2f} s" for name, value in median.items())
    ratios = "  ".join(
        f"{median['ours'] / value:.2f} of {name}"
        for name, value in median.items()
        if name != "ours"
    )
    print(f"{kind}: {figures}  |  ours is {ratios}")


def _cpu_seconds(work: Callable[[], None]) -> float:
    before = _used()
    work()
    return _used() - before


def _used() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _ours(source: Path, target: Path) -> None:
    run(source, target, settings())


def _bare(source: Path, target: Path) -> None:
    with av.open(str(source)) as reading, av.open(str(target), "w", format="wav") as writing:
        sound = writing.add_stream("pcm_s16le", rate=16_000, layout="mono")
        resampler = av.AudioResampler(format="s16", layout="mono", rate=16_000)
        for frame in reading.decode(audio=0):
            for part in resampler.resample(frame):
                writing.mux(sound.encode(part))
        for part in resampler.resample(None):
            writing.mux(sound.encode(part))
        writing.mux(sound.encode(None))


def _ffmpeg(source: Path, target: Path) -> None:
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-i", str(source), "-vn"]
    subprocess.run([*command, "-ar", "16000", "-ac", "1", "-f", "wav", str(target)], check=True)


def _recording(folder: Path, kind: str, seconds: float) -> Path:
    codec, container, rate, bit_rate = _KINDS[kind]
    path = folder / f"hour.{kind}"
    stereo = kind != "ogg"
    encode(
        path,
        codec,
        container,
        _speech(seconds, rate, 2 if stereo else 1),
        rate=rate,
        layout="stereo" if stereo else "mono",
        bit_rate=bit_rate,
    )
    return path


def _speech(seconds: float, rate: int, channels: int) -> Samples:
    voice = samples(DATA / "english.flac")
    # Only the amount of work matters here: the sound may be as rough as nearest neighbours make it.
    places = (np.arange(round(len(voice) * rate / 16_000)) * 16_000 // rate).astype(np.intp)
    once = np.repeat(voice[places][:, None], channels, axis=1)
    times = int(seconds * rate / len(once)) + 1
    return np.tile(once, (times, 1))[: round(seconds * rate)]


if __name__ == "__main__":
    main()
