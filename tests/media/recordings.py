"""Recordings of every kind that people and attackers hand in, made with PyAV alone.

Each function of KINDS writes one kind to a path. Sound is a tone unless samples are given, so
that a test can tell sound from silence; where the speech engine is asked, give it real speech.
"""

import io
import random
import struct
import wave
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.int16]
"""Sound as s16, shape (samples, channels)."""

SECONDS = 6.0
"""How long each recording of KINDS is, where its name does not say otherwise."""


def tone(seconds: float = SECONDS, rate: int = 48000, hz: Sequence[float] = (440,)) -> Samples:
    """A tone a channel, at a quarter of full scale."""
    time = np.arange(round(seconds * rate)) / rate
    channels = [np.sin(2 * np.pi * f * time) * 8192 for f in hz]
    return np.stack(channels, axis=1).astype(np.int16)


def encode(
    target: Path | io.RawIOBase,
    codec: str,
    container: str,
    samples: Samples | None = None,
    *,
    rate: int = 48000,
    layout: str = "mono",
    bit_rate: int | None = None,
    options: dict[str, str] | None = None,
) -> None:
    """Write samples by a codec into a container, the way the container's own muxer does it."""
    sound = tone(rate=rate) if samples is None else samples
    file = str(target) if isinstance(target, Path) else target
    with av.open(file, "w", format=container, options=options or {}) as output:
        stream = output.add_stream(codec, rate=rate, layout=layout)
        context = stream.codec_context
        if bit_rate:
            context.bit_rate = bit_rate
        resampler = av.AudioResampler(
            format=context.format or "s16", layout=layout, rate=rate, frame_size=context.frame_size
        )
        frame = av.AudioFrame.from_ndarray(sound.reshape(1, -1), format="s16", layout=layout)
        frame.sample_rate = rate
        frame.pts = 0
        frame.time_base = Fraction(1, rate)
        for piece in (*resampler.resample(frame), *resampler.resample(None)):
            output.mux(stream.encode(piece))
        output.mux(stream.encode(None))


def voice_ogg(path: Path) -> None:
    """What Telegram and WhatsApp send: Opus in Ogg."""
    encode(path, "libopus", "ogg", bit_rate=24000)


def mp3(path: Path) -> None:
    encode(path, "libmp3lame", "mp3", rate=44100)


def mp3_with_cover(path: Path) -> None:
    """An ID3v2 tag with a picture before the sound."""
    sound = io.BytesIO()
    encode(sound, "libmp3lame", "mp3", rate=44100, options={"id3v2_version": "0"})
    picture = b"\x00image/jpeg\x00\x03\x00" + _jpeg()
    frame = b"APIC" + struct.pack(">IH", len(picture), 0) + picture
    size = len(frame)
    length = bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0))
    path.write_bytes(b"ID3\x03\x00\x00" + length + frame + sound.getvalue())


def mp3_cut(path: Path) -> None:
    """An mp3 whose header claims more than the file holds."""
    mp3(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])


def ogg_cut(path: Path) -> None:
    voice_ogg(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])


def m4a_moov_at_end(path: Path) -> None:
    encode(path, "aac", "ipod")


def m4a_moov_front(path: Path) -> None:
    encode(path, "aac", "ipod", options={"movflags": "+faststart"})


def m4a_truncated_no_moov(path: Path) -> None:
    """A recorder that died before closing its file."""
    m4a_moov_at_end(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])


def mp4_fragmented_cut(path: Path) -> None:
    """A recorder that writes fragments died: what is there can be read."""
    encode(
        path,
        "aac",
        "mp4",
        options={"movflags": "frag_keyframe+empty_moov", "frag_duration": "500000"},
    )
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])


class _Stream(io.RawIOBase):
    """A target that cannot seek, as the browser's recorder writes."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        return self._file.write(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def live_webm(path: Path) -> None:
    """What a browser records: no duration in the header."""
    with _Stream(path) as target:
        encode(target, "libopus", "webm", options={"live": "1"})


def webm(path: Path) -> None:
    encode(path, "libopus", "webm")


def phone_8k_ulaw(path: Path) -> None:
    encode(path, "pcm_mulaw", "wav", tone(rate=8000, hz=(300,)), rate=8000)


def phone_8k_alaw(path: Path) -> None:
    encode(path, "pcm_alaw", "wav", tone(rate=8000, hz=(300,)), rate=8000)


def phone_2ch_each_a_speaker(path: Path) -> None:
    encode(path, "pcm_s16le", "wav", tone(rate=8000, hz=(300, 700)), rate=8000, layout="stereo")


def multitrack(path: Path, channels: int) -> None:
    """What a mixing desk records: more tracks than any layout has names for; two are in use."""
    sound = np.zeros((round(SECONDS * 16000), channels), np.int16)
    sound[:, [0, channels - 1]] = tone(rate=16000, hz=(300, 700))
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, 16000, 0, "NONE", ""))
        file.writeframes(sound.tobytes())


def wav(path: Path) -> None:
    encode(path, "pcm_s16le", "wav", rate=44100)


def wav_16k(path: Path) -> None:
    """Sound that is already what engines take."""
    encode(path, "pcm_s16le", "wav", tone(rate=16000), rate=16000)


def tiny_20ms(path: Path) -> None:
    encode(path, "pcm_s16le", "wav", np.zeros((320, 1), np.int16), rate=16000)


def silence_30s(path: Path) -> None:
    encode(path, "pcm_s16le", "wav", np.zeros((480000, 1), np.int16), rate=16000)


def amr(path: Path) -> None:
    encode(path, "libopencore_amrnb", "amr", tone(rate=8000), rate=8000)


def three_gp(path: Path) -> None:
    encode(path, "libopencore_amrnb", "3gp", tone(rate=8000), rate=8000)


def surround(path: Path) -> None:
    encode(path, "aac", "ipod", tone(hz=(300, 400, 500, 60, 600, 700)), layout="5.1")


def flac(path: Path) -> None:
    encode(path, "flac", "flac", rate=44100)


def alac(path: Path) -> None:
    encode(path, "alac", "ipod", rate=44100)


def aiff(path: Path) -> None:
    encode(path, "pcm_s16be", "aiff", rate=44100)


def caf(path: Path) -> None:
    encode(path, "pcm_s16le", "caf", rate=44100)


def wma(path: Path) -> None:
    encode(path, "wmav2", "asf", rate=44100, bit_rate=64000)


def aac_adts(path: Path) -> None:
    encode(path, "aac", "adts", rate=44100)


def mp2(path: Path) -> None:
    encode(path, "mp2", "mp2", rate=44100)


def ac3(path: Path) -> None:
    encode(path, "ac3", "ac3")


def adpcm(path: Path) -> None:
    encode(path, "adpcm_ima_wav", "wav", rate=44100)


def video_with_sound(path: Path) -> None:
    _video(path, with_sound=True)


def video_no_audio(path: Path) -> None:
    _video(path, with_sound=False)


def video_with_late_sound(path: Path, late_seconds: float) -> None:
    """A screen recording whose microphone came on later."""
    _video(path, with_sound=True, late_seconds=late_seconds)


def zero_bytes(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("Minutes of the meeting.\nWe talked about the plan for spring.\n" * 50)


def random_bytes(path: Path) -> None:
    path.write_bytes(_rubbish(200_000))


def picture(path: Path) -> None:
    path.write_bytes(_jpeg())


def ogg_of_nothing(path: Path) -> None:
    """The first bytes of an Ogg, and rubbish after them."""
    path.write_bytes(b"OggS" + _rubbish(50_000))


def hls(path: Path, sibling: str, url: str) -> None:
    """An HLS playlist: names a file beside it, and an address."""
    path.write_text(
        "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:6\n"
        f"#EXTINF:6.0,\n{sibling}\n#EXTINF:6.0,\n{url}\n#EXT-X-ENDLIST\n"
    )


def ffconcat(path: Path, sibling: str, url: str) -> None:
    """FFmpeg's list of parts; its reader refuses a list that holds an address, so none is in."""
    path.write_text(f"ffconcat version 1.0\n# {url}\nfile {sibling}\n")


def mpd(path: Path, sibling: str, url: str) -> None:
    """A DASH manifest."""
    path.write_text(
        '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        'mediaPresentationDuration="PT6S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">'
        f'<Period><AdaptationSet mimeType="audio/mp4"><Representation id="1" bandwidth="64000">'
        f'<BaseURL>{url}</BaseURL><SegmentList><SegmentURL media="{sibling}"/></SegmentList>'
        "</Representation></AdaptationSet></Period></MPD>\n"
    )


def sdp(path: Path, sibling: str, url: str) -> None:
    """A session description: asks the reader to listen to the network."""
    path.write_text(
        f"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns={sibling}\r\nu={url}\r\nc=IN IP4 127.0.0.1\r\n"
        "t=0 0\r\nm=audio 40000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
    )


def m3u(path: Path, sibling: str, url: str) -> None:
    """A playlist of a music player, without a header."""
    path.write_text(f"{url}\n{sibling}\n")


SOUND: dict[str, Callable[[Path], None]] = {
    "voice.ogg": voice_ogg,
    "voice.oga": voice_ogg,
    "voice_without_extension": voice_ogg,
    "looks_like.mp3": voice_ogg,
    "call.amr": voice_ogg,
    "plain.mp3": mp3,
    "with_cover.mp3": mp3_with_cover,
    "moov_at_end.m4a": m4a_moov_at_end,
    "moov_front.m4a": m4a_moov_front,
    "live.webm": live_webm,
    "plain.webm": webm,
    "phone_8k_ulaw.wav": phone_8k_ulaw,
    "phone_8k_alaw.wav": phone_8k_alaw,
    "phone_2ch_each_a_speaker.wav": phone_2ch_each_a_speaker,
    "plain.wav": wav,
    "16k.wav": wav_16k,
    "phone.amr": amr,
    "phone.3gp": three_gp,
    "surround.m4a": surround,
    "plain.flac": flac,
    "lossless.m4a": alac,
    "plain.aiff": aiff,
    "plain.caf": caf,
    "plain.wma": wma,
    "plain.aac": aac_adts,
    "plain.mp2": mp2,
    "plain.ac3": ac3,
    "adpcm.wav": adpcm,
    "with_sound.mp4": video_with_sound,
}
"""Recordings of SECONDS of a tone, under the names they come with."""

CUT: dict[str, Callable[[Path], None]] = {
    "cut.mp3": mp3_cut,
    "cut.ogg": ogg_cut,
    "cut_in_fragments.mp4": mp4_fragmented_cut,
}
"""Two thirds of a recording: what is there is to be used."""

NO_SOUND: dict[str, tuple[Callable[[Path], None], str]] = {
    "zero_bytes.ogg": (zero_bytes, "empty_file"),
    "video_no_audio.mp4": (video_no_audio, "no_audio_track"),
    "truncated_no_moov.m4a": (m4a_truncated_no_moov, "truncated"),
    "minutes.mp3": (text, "not_media"),
    "random.mp3": (random_bytes, "not_media"),
    "picture.ogg": (picture, "not_media"),
    "rubbish.ogg": (ogg_of_nothing, "no_audio_decoded"),
}
"""Files without sound, each with its verdict."""

PLAYLISTS: dict[str, Callable[[Path, str, str], None]] = {
    "hls": hls,
    "ffconcat": ffconcat,
    "mpd": mpd,
    "sdp": sdp,
    "m3u": m3u,
}
"""Files that name a sibling file and an address, hoping that somebody reads them."""


def _video(path: Path, *, with_sound: bool, late_seconds: float = 0) -> None:
    with av.open(str(path), "w", format="mp4") as output:
        video = output.add_stream("libx264", rate=5)
        video.width, video.height, video.pix_fmt = 160, 120, "yuv420p"
        audio = output.add_stream("aac", rate=48000, layout="mono") if with_sound else None
        for number in range(round(SECONDS * 5)):
            shade = np.full((120, 160, 3), number * 8 % 256, np.uint8)
            output.mux(video.encode(av.VideoFrame.from_ndarray(shade)))
        output.mux(video.encode(None))
        if audio is not None:
            frame = av.AudioFrame.from_ndarray(tone().reshape(1, -1), format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = 48000, 0, Fraction(1, 48000)
            resampler = av.AudioResampler("fltp", "mono", 48000, frame_size=1024)
            for piece in (*resampler.resample(frame), *resampler.resample(None)):
                piece.pts = (piece.pts or 0) + round(late_seconds * 48000)
                output.mux(audio.encode(piece))
            output.mux(audio.encode(None))


def _jpeg() -> bytes:
    codec = av.CodecContext.create("mjpeg", "w")
    codec.width, codec.height, codec.pix_fmt = 160, 120, "yuvj420p"
    codec.time_base = Fraction(1, 25)
    frame = av.VideoFrame.from_ndarray(np.full((120, 160, 3), 200, np.uint8)).reformat(
        format="yuvj420p"
    )
    return b"".join(bytes(packet) for packet in (*codec.encode(frame), *codec.encode(None)))


def _rubbish(count: int) -> bytes:
    return random.Random(20).randbytes(count)  # noqa: S311 - seeded: the same bytes each run
