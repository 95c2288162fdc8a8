"""Which containers and codecs are read at all, what a file that cannot be read is, what plays.

The lists are what people's recorders, phones and messengers write. Everything else in FFmpeg,
above all what opens further files or the network, stays shut.
"""

import os
import struct

CONTAINERS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dts,eac3,flac,flv,gsm,matroska,mov,mp3,mpc,mpc8,mpeg,"
    "mpegts,ogg,rm,tak,tta,voc,w64,wav,wv"
)
"""FFmpeg's names of demuxers, as its option format_whitelist takes them."""

CODECS = (
    "aac,aac_latm,ac3,adpcm_g722,adpcm_g726,adpcm_ima_qt,adpcm_ima_wav,adpcm_ms,adpcm_swf,"
    "adpcm_yamaha,alac,als,amrnb,amrwb,ape,atrac3,atrac3plus,cook,dca,eac3,flac,g722,g723_1,"
    "g726,g729,gsm,gsm_ms,libopencore_amrnb,libopencore_amrwb,libopus,mp1,mp1float,mp2,"
    "mp2float,mp3,mp3float,mpc7,mpc8,nellymoser,opus,pcm_alaw,pcm_bluray,pcm_dvd,pcm_f32be,"
    "pcm_f32le,pcm_f64be,pcm_f64le,pcm_mulaw,pcm_s16be,pcm_s16le,pcm_s24be,pcm_s24le,"
    "pcm_s32be,pcm_s32le,pcm_s8,pcm_u8,qdm2,real_144,real_288,sipr,speex,tak,truespeech,tta,"
    "vorbis,wavpack,wmalossless,wmapro,wmav1,wmav2,wmavoice"
)
"""FFmpeg's names of decoders; no video decoder is among them, so none ever runs."""

_PLAYLIST_STARTS = (b"#extm3u", b"ffconcat version", b"[playlist]", b"v=0\r\n", b"v=0\n", b"[ref")
_PLAYLIST_ROOTS = (b"<mpd", b"<smil", b"<asx", b"<smoothstreamingmedia", b"<playlist")
_HEAD_BYTES = 4096
_ADDRESS_STARTS = (b"http://", b"https://", b"rtsp://", b"rtmp://", b"file:", b"mms://")

_PLAYABLE = {
    "mp3": {"mp3", "mp3float"},
    "ogg": {"opus", "libopus", "vorbis", "flac"},
    "wav": {"pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_f32le"},
    "flac": {"flac"},
    "matroska,webm": {"opus", "libopus", "vorbis"},
    "mov,mp4,m4a,3gp,3g2,mj2": {"aac", "mp3", "mp3float"},
}
_PLAYABLE_VIDEO = {"h264", "vp8", "vp9", "av1"}
_HEADER_TOLERANCE = 0.01
_CLOCK_TOLERANCE_SECONDS = 0.5


def is_decodable(codec: str) -> bool:
    """True for the decoders on the list."""
    return codec in CODECS.split(",")


def plays_in_browsers(container: str, codec: str, video: set[str], head: bytes) -> bool:
    """True when today's browsers play this kind as it is; video holds the video codecs' names."""
    if codec not in _PLAYABLE.get(container, ()) or not video <= _PLAYABLE_VIDEO:
        return False
    if container == "matroska,webm":
        # Browsers take WebM; what else Matroska holds they take by luck.
        return b"webm" in head[:64]
    return head[8:11] not in (b"3gp", b"3g2", b"qt ")


def seeks_rightly(
    decoded_seconds: float, header_seconds: float | None, clock_seconds: float | None
) -> bool:
    """True when a player's clock agrees with the text's times, which come from decoded sound.

    header_seconds is the length that the file claims: without it, or with a wrong one, a player
    cannot seek (CM04). clock_seconds is where the file's own timestamps end: gaps in them,
    or sound that starts later than the picture, would put every later line off.
    """
    if header_seconds is None or clock_seconds is None:
        return False
    allowed = max(1.0, decoded_seconds * _HEADER_TOLERANCE)
    if abs(header_seconds - decoded_seconds) > allowed:
        return False
    return abs(clock_seconds - decoded_seconds) <= _CLOCK_TOLERANCE_SECONDS


def reason_unreadable(source: int) -> str:
    """The error code for a file that no demuxer could open: playlist, truncated, or what it is.

    source is an open descriptor; its position does not matter and is left alone.
    """
    head = os.pread(source, _HEAD_BYTES, 0)
    if is_playlist(head):
        return "playlist"
    if _is_mp4(head):
        return "truncated" if _lacks_index(source) else "no_audio_decoded"
    if head.startswith((b"OggS", b"fLaC", b"ID3", b"\x1a\x45\xdf\xa3", b"RIFF", b"#!AMR", b"caff")):
        return "no_audio_decoded"
    return "not_media"


def is_playlist(head: bytes) -> bool:
    """True for the lists of other files and streams that players know."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith(_PLAYLIST_STARTS):
        return True
    if text.startswith(b"<") and any(root in text for root in _PLAYLIST_ROOTS):
        return True
    return text.startswith(_ADDRESS_STARTS)


def _is_mp4(head: bytes) -> bool:
    return head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")


def _lacks_index(source: int) -> bool:
    """True when an MP4 ends before its index (`moov`): interrupted, or died while recording."""
    size = os.fstat(source).st_size
    offset = 0
    while offset + 8 <= size:
        length, kind = struct.unpack(">I4s", os.pread(source, 8, offset))
        if length == 1:
            length = int.from_bytes(os.pread(source, 8, offset + 8), "big")
        if kind == b"moov":
            return bool(offset + length > size)
        # Length 0 means "to the end of the file"; less than a header's is rubbish.
        if length < 8:
            break
        offset += length
    return True
