"""What a file is, by its first bytes: the closed list of extensions and served types (S04).

This only names the stored copy and says how it may be served; whether it is a recording, the
converter finds out by reading it.
"""

from dataclasses import dataclass

HEAD_BYTES = 64
"""How many first bytes sniff() looks at."""


@dataclass(frozen=True)
class Kind:
    """An extension with its dot, and the media type to serve it as."""

    extension: str
    media_type: str


UNKNOWN = Kind(".bin", "application/octet-stream")
WAV = Kind(".wav", "audio/wav")

_MP3 = Kind(".mp3", "audio/mpeg")
_AAC = Kind(".aac", "audio/aac")
_BY_START = (
    (b"OggS", Kind(".ogg", "audio/ogg")),
    (b"ID3", _MP3),
    (b"fLaC", Kind(".flac", "audio/flac")),
    (b"\x1a\x45\xdf\xa3", Kind(".webm", "video/webm")),
    (b"#!AMR", Kind(".amr", "audio/amr")),
    (b"caff", Kind(".caf", "audio/x-caf")),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", Kind(".wma", "audio/x-ms-wma")),
    (b"FLV\x01", Kind(".flv", "video/x-flv")),
    (b"\x0b\x77", Kind(".ac3", "audio/ac3")),
    (b"\x00\x00\x01\xba", Kind(".mpg", "video/mpeg")),
)
_BY_RIFF = {b"WAVE": WAV, b"AVI ": Kind(".avi", "video/x-msvideo")}
_BY_BRAND = {
    b"M4A ": Kind(".m4a", "audio/mp4"),
    b"M4B ": Kind(".m4a", "audio/mp4"),
    b"qt  ": Kind(".mov", "video/quicktime"),
}
_MP4 = Kind(".mp4", "video/mp4")
_3GP = Kind(".3gp", "video/3gpp")

KINDS = frozenset(
    {
        UNKNOWN,
        WAV,
        _MP3,
        _AAC,
        _MP4,
        _3GP,
        Kind(".aiff", "audio/aiff"),
        *(kind for _, kind in _BY_START),
        *_BY_RIFF.values(),
        *_BY_BRAND.values(),
    }
)
"""The closed list: a stored name ends in one of these."""


def sniff(head: bytes) -> Kind:
    """The kind of a file whose first HEAD_BYTES bytes are these; UNKNOWN when nothing fits."""
    for start, kind in _BY_START:
        if head.startswith(start):
            return kind
    if head[:4] in (b"RIFF", b"RF64"):
        return _BY_RIFF.get(head[8:12], UNKNOWN)
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return Kind(".aiff", "audio/aiff")
    if head[4:8] == b"ftyp":
        brand = head[8:12]
        return _3GP if brand.startswith((b"3gp", b"3g2")) else _BY_BRAND.get(brand, _MP4)
    if head[4:8] in (b"moov", b"mdat", b"wide"):
        return Kind(".mov", "video/quicktime")
    return _mpeg_audio(head)


def _mpeg_audio(head: bytes) -> Kind:
    """MPEG audio has no magic word: 11 set bits begin a frame; AAC (ADTS) has 12 and layer 0."""
    if len(head) < 2 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return UNKNOWN
    layer = head[1] >> 1 & 0b11
    if layer == 0:
        return _AAC if head[1] & 0xF0 == 0xF0 else UNKNOWN
    return _MP3
