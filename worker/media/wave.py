"""Writing WAV as the engines take it: 16 kHz, mono, s16, the sizes filled in at the end."""

import errno
import os
import struct

from app.errors import AppError

RATE_HZ = 16_000
SAMPLE_BYTES = 2
MAX_SECONDS = (2**32 - 64) // (RATE_HZ * SAMPLE_BYTES)
"""What fits under the 32-bit sizes of a WAV header: 37 hours."""

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class WavWriter:
    """Streams samples to an open descriptor; finish() makes the file whole.

    A full disk is AppError disk_full, the file size limit unsafe_media, anything else
    storage_failed.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._bytes = 0
        self._put(_header(0))

    @property
    def seconds(self) -> float:
        """How much sound was written."""
        return self._bytes / (RATE_HZ * SAMPLE_BYTES)

    def write(self, samples: memoryview) -> None:
        """Append samples, s16 little-endian."""
        self._put(samples)
        self._bytes += len(samples)

    def finish(self) -> None:
        """Write the sizes into the header."""
        os.lseek(self._target, 0, os.SEEK_SET)
        self._put(_header(self._bytes))

    def _put(self, data: bytes | memoryview) -> None:
        left = memoryview(data)
        code = None
        while left and not code:
            try:
                left = left[os.write(self._target, left) :]
            except OSError as error:
                code = _code_of(error)
        if code:
            raise AppError(code)


def _header(data_bytes: int) -> bytes:
    return _HEADER.pack(
        b"RIFF",
        _HEADER.size - 8 + data_bytes,
        b"WAVE",
        b"fmt ",
        16,
        1,  # PCM
        1,
        RATE_HZ,
        RATE_HZ * SAMPLE_BYTES,
        SAMPLE_BYTES,
        8 * SAMPLE_BYTES,
        b"data",
        data_bytes,
    )


def _code_of(error: OSError) -> str:
    if error.errno in _FULL:
        return "disk_full"
    return "unsafe_media" if error.errno == errno.EFBIG else "storage_failed"
