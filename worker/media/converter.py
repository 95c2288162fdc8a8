"""The converter child: takes one order, confines itself, converts, tells the outcome.

Order: {source, target, max_seconds, cpu_seconds}. Answers: {progress}, then one of {facts} and
{code, detail}. It opens the two files first; after that it can open nothing.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from app.errors import AppError
from worker.boot import Channel
from worker.media.decode import Decoder, choose_track, open_recording, video_codecs
from worker.media.facts import Facts
from worker.media.formats import plays_in_browsers, seeks_rightly
from worker.media.wave import MAX_SECONDS, RATE_HZ, SAMPLE_BYTES, WavWriter
from worker.sandbox import Limits, confine

_MEMORY_BYTES = 1 << 30
"""Address space; a good hour takes 130 MB of it. An index of six hours of video fits."""
_REPORT_SECONDS = 0.5
_PADDING_SECONDS = 1
"""Codecs pad the end (AAC by some 20 ms): a recording of just the limit is not too long."""


def main(channel: Channel, _: Sequence[str]) -> int:
    """Carry out the one order that comes."""
    order = next(channel.messages())
    try:
        facts = _carry_out(order, lambda share: channel.say({"progress": round(share, 4)}))
    except AppError as error:
        channel.say({"code": error.code, "detail": error.detail})
    except MemoryError:
        channel.say({"code": "unsafe_media", "detail": "memory"})
    else:
        channel.say({"facts": asdict(facts)})
    return 0


def _carry_out(order: dict[str, Any], report: Callable[[float], None]) -> Facts:
    source, target = _open(order["source"], order["target"])
    max_seconds = min(order["max_seconds"], MAX_SECONDS)
    confine(
        Limits(
            memory_bytes=_MEMORY_BYTES,
            cpu_seconds=order["cpu_seconds"],
            # The length is judged here, a second at a time; the kernel's limit stands behind.
            file_bytes=(max_seconds + 60) * RATE_HZ * SAMPLE_BYTES,
        )
    )
    return convert(source, target, max_seconds, report)


def _open(source: str, target: str) -> tuple[int, int]:
    try:
        return (
            os.open(source, os.O_RDONLY),
            os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
        )
    except OSError as error:
        raise AppError("storage_failed", os.strerror(error.errno or 0)) from None


def convert(source: int, target: int, max_seconds: float, report: Callable[[float], None]) -> Facts:
    """Convert an open recording into an open file; report(share of 1) comes twice a second.

    AppError: the verdicts on recordings, or disk_full and storage_failed.
    """
    with open_recording(source) as container:
        track = choose_track(container)
        decoder = Decoder(container, track)
        header_seconds = container.duration / 1_000_000 if container.duration else None
        size = os.fstat(source).st_size
        wav = WavWriter(target)
        told = time.monotonic()
        for block in decoder.blocks():
            wav.write(block)
            if wav.seconds > max_seconds + _PADDING_SECONDS:
                raise AppError("too_long", f"longer than {max_seconds} s")
            now = time.monotonic()
            if now - told >= _REPORT_SECONDS:
                told = now
                report(_share(wav.seconds, header_seconds, decoder.read_bytes, size))
        if not wav.seconds:
            raise AppError("no_audio_decoded")
        wav.finish()
        codec = track.codec_context.codec.name
        video = video_codecs(container)
        plays = plays_in_browsers(container.format.name, codec, video, os.pread(source, 64, 0))
        seeks = seeks_rightly(wav.seconds, header_seconds, decoder.clock_seconds)
        return Facts(
            seconds=wav.seconds,
            header_seconds=header_seconds,
            container=container.format.name,
            codec=codec,
            has_video=bool(video),
            is_playable=plays and seeks,
        )


def _share(seconds: float, header_seconds: float | None, read_bytes: int, size: int) -> float:
    """How much is done: by the claimed length, else by the bytes read; never quite 1."""
    share = seconds / header_seconds if header_seconds else read_bytes / size
    return min(share, 0.99)
