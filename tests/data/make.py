"""How the recordings beside this file were made, from two Debian packages of real speech.

Needs pocketsphinx-testdata and asterisk-core-sounds-ru-g722. Run: python -m tests.data.make
"""

from pathlib import Path

import av
import numpy as np

from tests.speech import DATA, RATE_HZ, Samples, samples, silence

GAP = silence(0.7)
"""Between joined clips: a pause as between sentences."""

LIBRIVOX = Path("/usr/share/pocketsphinx/test/data/librivox")
ENGLISH = tuple(
    f"sense_and_sensibility_01_austen_64kb-{number}"
    for number in ("0870", "0880", "0890", "0920", "0930")
)
PROMPTS = Path("/usr/share/asterisk/sounds/ru_RU_f_IvrvoiceRU")
RUSSIAN = (
    "tt-allbusy",
    "demo-congrats",
    "vm-newuser",
    "vm-nobox",
    "conf-usermenu",
    "pbx-invalid",
    "queue-youarenext",
    "privacy-unident",
)


def main() -> None:
    """Write every recording anew."""
    english = [samples(LIBRIVOX / f"{name}.wav") for name in ENGLISH]
    russian = [samples(PROMPTS / f"{name}.g722", form="g722") for name in RUSSIAN]
    _write("english.flac", _joined(english), "flac")
    _write("english-short.mp3", english[1], "libmp3lame", bit_rate=48_000)
    _write("english-phone.wav", _joined(english[1:3]), "pcm_mulaw", rate_hz=8_000)
    _write("russian.ogg", _joined(russian), "libopus", bit_rate=32_000)
    _write("russian-short.m4a", russian[0], "aac", bit_rate=48_000)


def _joined(clips: list[Samples]) -> Samples:
    return np.concatenate([part for clip in clips for part in (clip, GAP)][:-1])


def _write(
    name: str, sound: Samples, codec: str, *, bit_rate: int = 0, rate_hz: int = RATE_HZ
) -> None:
    frame = av.AudioFrame.from_ndarray(sound.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = RATE_HZ
    with av.open(str(DATA / name), "w") as container:
        stream = container.add_stream(codec, rate=rate_hz, layout="mono")
        if bit_rate:
            stream.bit_rate = bit_rate
        resampler = av.AudioResampler(
            format=stream.codec_context.format or "s16",
            layout="mono",
            rate=rate_hz,
            frame_size=stream.codec_context.frame_size or 0,
        )
        for part in [*resampler.resample(frame), *resampler.resample(None), None]:
            container.mux(stream.encode(part))


if __name__ == "__main__":
    main()
