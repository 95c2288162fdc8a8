"""The embedded engine's child process: loads the model once, then recognizes what it is sent.

Started by worker.recognizers.embedded through worker.child, with one argument, JSON: `model` (a
folder) and `threads`. It says `ready`, or `failed` when the model cannot be loaded. Then each
request {audio, language, from_second, piece_seconds} is answered with any number of `progress`
(fraction of the recording), a `piece` for each finished part, and `done`, or `failed`.
"""

import json
import os
import resource
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from faster_whisper import BatchedInferencePipeline, WhisperModel

from app.job import Segment
from app.languages import WHISPERS_OWN_CODES
from worker.boot import Channel
from worker.recognizers.sentences import Word, in_order, sentences
from worker.recognizers.sound import RATE_HZ, Recording, Sound
from worker.recognizers.windows import Window, speech_windows

_BATCH_SIZE = 4
_BEAM_SIZE = 5
_NICENESS = 10
"""Recognition takes all cores for minutes; the panel and the intake go first."""
_STANDARD_CODES = {own: standard for standard, own in WHISPERS_OWN_CODES.items()}


def main(channel: Channel, arguments: Sequence[str]) -> int:
    """Serve requests until the parent closes the pipe."""
    _limit_itself()
    options = json.loads(arguments[0])
    try:
        engine = Engine(Path(options["model"]), options["threads"])
    except Exception as error:  # the engine's own errors have no common kind
        channel.say({"event": "failed", "what": type(error).__name__})
        return 1
    channel.say({"event": "ready"})
    for request in channel.messages():
        try:
            _serve(engine, request, channel)
        except Exception as error:  # told to the parent, which decides; this process is done
            channel.say({"event": "failed", "what": type(error).__name__})
            return 1
    return 0


def _limit_itself() -> None:
    """Leave no core dump, write no file, and be the one that the kernel kills for memory.

    Address space is not limited: the libraries reserve far more than they use, and how much
    the owner's own model needs is not ours to guess.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    os.nice(_NICENESS)
    with suppress(OSError):  # not Linux, or a container without it
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _serve(engine: "Engine", request: dict[str, Any], channel: Channel) -> None:
    with Recording(Path(request["audio"])) as recording:
        seconds = recording.total_samples / RATE_HZ

        def tell(reached: float) -> None:
            channel.say({"event": "progress", "fraction": min(1.0, reached / seconds)})

        from_sample = round(request["from_second"] * RATE_HZ)
        for sound in recording.sounds(from_sample, request["piece_seconds"]):
            heard = engine.hear(sound, request["language"], tell)
            channel.say({"event": "piece", **asdict(heard), "fraction": sound.end / seconds})
    channel.say({"event": "done"})


@dataclass(frozen=True)
class Heard:
    """What was recognized in a stretch: seconds of the whole recording; language only if speech."""

    start: float
    end: float
    language: str | None
    segments: Sequence[Segment]


class Engine:
    """A loaded model in the one configuration that was measured best (docs/decisions/0006).

    Batched decoding without timestamps of its own, and words aligned afterwards: with them the
    batched mode loses text at the ends of its windows. The language is heard for each window
    anew: told only once, Whisper translates what follows in another language. What is no speech
    is not given to it, for which it would invent words.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        self._model = WhisperModel(
            str(folder), device="cpu", compute_type="int8", cpu_threads=threads
        )
        self._ear = _LanguageEar(self._model.model)
        self._model.model = self._ear
        self._pipeline = BatchedInferencePipeline(self._model)

    def hear(self, sound: Sound, language: str | None, tell: Callable[[float], None]) -> Heard:
        """Recognize a stretch; tell gets the second of the recording that is reached."""
        windows = speech_windows(sound.samples)
        if not windows:
            return Heard(sound.start, sound.end, None, [])
        code = language and WHISPERS_OWN_CODES.get(language, language)
        parts, info = self._pipeline.transcribe(
            sound.samples,
            clip_timestamps=[{"start": a / RATE_HZ, "end": b / RATE_HZ} for a, b in windows],
            language=code,
            batch_size=_BATCH_SIZE,
            beam_size=_BEAM_SIZE,
            without_timestamps=True,
            word_timestamps=True,
            multilingual=code is None and self._ear.is_multilingual,
        )
        self._ear.heard.clear()
        words: list[Word] = []
        for part in parts:
            words += [
                Word(sound.start + word.start, sound.start + word.end, word.word)
                for word in part.words
            ]
            tell(sound.start + part.end)
        segments = in_order(list(sentences(words)), start=sound.start, end=sound.end)
        heard = _most_heard(self._ear.heard, windows) or info.language
        return Heard(
            sound.start,
            sound.end,
            _STANDARD_CODES.get(heard, heard) if segments else None,
            segments,
        )


class _LanguageEar:
    """The model itself, but it keeps which language it heard in each window.

    The pipeline asks the model for each window's language and tells nobody; asking once more
    would cost a quarter of the whole work.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.heard: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def detect_language(self, encoded: Any) -> Any:
        """See ctranslate2.models.Whisper: for each window, languages with their probability."""
        answer = self._model.detect_language(encoded)
        self.heard += [likely[0][0].strip("<|>") for likely in answer]
        return answer


def _most_heard(languages: Sequence[str], windows: Sequence[Window]) -> str | None:
    seconds: defaultdict[str, int] = defaultdict(int)
    for language, (first, end) in zip(languages, windows, strict=False):
        seconds[language] += end - first
    return max(seconds, key=seconds.__getitem__, default=None)
