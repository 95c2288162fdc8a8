"""Reading a stranger's recording with FFmpeg through PyAV: open, choose the sound, decode.

The file is given as a descriptor, and the protocol `fd` is the only one allowed: FFmpeg sees no
name, so it judges by the bytes alone, and can open nothing else whatever the bytes say.
"""

import os
from collections.abc import Iterator
from typing import Any

import av

# PyAV imports these when it opens a file; by then this process can open nothing any more.
import av.audio.codeccontext
import av.subtitles.codeccontext
import av.subtitles.stream
import av.video.codeccontext
import av.video.stream
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.stream import Discard, Disposition

from app.errors import AppError
from worker.media.formats import CODECS, CONTAINERS, is_decodable, reason_unreadable
from worker.media.resample import Resampler
from worker.media.wave import SAMPLE_BYTES


def open_recording(source: int) -> InputContainer:
    """The recording behind a descriptor; AppError empty_file, playlist, truncated or not_media."""
    if os.fstat(source).st_size == 0:
        raise AppError("empty_file")
    av.logging.set_level(None)
    options = {
        "fd": str(source),
        "protocol_whitelist": "fd",
        "format_whitelist": CONTAINERS,
        "codec_whitelist": CODECS,
    }
    try:
        return av.open("fd:", "r", options=options, metadata_errors="ignore")
    except av.error.MemoryError:
        raise
    except av.FFmpegError:
        code = reason_unreadable(source)
    raise AppError(code)


def choose_track(container: InputContainer) -> AudioStream:
    """The first track of sound that can be decoded; AppError no_audio_track or not_media."""
    for stream in container.streams.audio:
        context: Any = stream.codec_context
        if context is not None and is_decodable(context.codec.name):
            for other in container.streams:
                if other.index != stream.index:
                    # An MP4's pictures are then not even read from the disk.
                    other.discard = Discard.all
            return stream
    if container.streams.audio:
        raise AppError("not_media", "no decoder for its sound")
    raise AppError("no_audio_track" if video_codecs(container) else "not_media")


def video_codecs(container: InputContainer) -> set[str]:
    """The codecs of the moving pictures; a cover picture is none."""
    return {
        stream.codec_context.name if stream.codec_context else "unknown"
        for stream in container.streams.video
        if not stream.disposition & Disposition.attached_pic
    }


class Decoder:
    """The sound of a track as 16 kHz mono s16 in blocks of a second.

    read_bytes tells how far the file was read. clock_seconds is where the file's own timestamps
    have got to since its start, None when it has none.
    """

    def __init__(self, container: InputContainer, track: AudioStream) -> None:
        self._container = container
        self._track = track
        self._resampler = Resampler()
        track.codec_context.thread_count = 1
        self._last: AudioFrame | None = None
        self.read_bytes = 0

    def blocks(self) -> Iterator[memoryview]:
        """Decode to the end; damaged stretches are passed over (a cut file ends where it ends)."""
        packets = self._container.demux(self._track)
        while True:
            try:
                packet = next(packets)
            except (StopIteration, av.FFmpegError):
                break
            if packet.pos is not None:
                self.read_bytes = packet.pos
            try:
                frames = packet.decode()
            except av.error.MemoryError:
                raise
            except av.FFmpegError:
                continue
            for frame in frames:
                self._last = frame
                for block in self._resample(frame):
                    yield _samples(block)
        for block in self._resampler.rest():
            yield _samples(block)

    @property
    def clock_seconds(self) -> float | None:
        """Where the timestamps ended, seconds from the start of the file."""
        last = self._last
        if last is None or last.pts is None or last.time_base is None:
            return None
        start = (self._container.start_time or 0) / av.time_base
        return float(last.pts * last.time_base) + last.samples / last.sample_rate - start

    def _resample(self, frame: AudioFrame) -> list[AudioFrame]:
        try:
            return self._resampler.put(frame)
        except av.error.MemoryError:
            raise
        except (av.FFmpegError, ValueError):
            # A frame that no filter takes, of a layout without a name, say.
            return []


def _samples(block: AudioFrame) -> memoryview:
    """A plane is padded; only its samples count."""
    return memoryview(block.planes[0])[: block.samples * SAMPLE_BYTES]
