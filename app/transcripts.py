"""A transcript as people and programs take it away: txt, srt, vtt and json, and as paragraphs.

Engines give odd times and texts: every form is well-formed whatever they gave.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.job import Segment, Transcript

MEDIA_TYPES = {
    "txt": "text/plain; charset=utf-8",
    "srt": "application/x-subrip; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
    "json": "application/json",
}
"""The forms that render() gives, each with the media type to serve it as."""

LINE_LENGTH = 42
"""Characters in a subtitle line, as broadcasters have it; a cue has at most two lines."""

_SHORTEST_MS = 100
_LATEST_SECONDS = 99.0 * 3600
_PAUSE_SECONDS = 1.5
_PARAGRAPH_LENGTH = 420
# Control characters, line and paragraph separators, lone surrogates and non-characters: no
# player shows them, and some refuse the file.
_UNSHOWABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
_SPACES = re.compile(r"\s+")
_ARROW = re.compile(r"-{2,}>")


@dataclass(frozen=True)
class Paragraph:
    """Segments that are read in one go; start is in seconds."""

    start: float
    speaker: str | None
    segments: Sequence[Segment]

    @property
    def text(self) -> str:
        """The segments' texts, joined."""
        return " ".join(segment.text for segment in self.segments)


@dataclass(frozen=True)
class _Cue:
    start_ms: int
    end_ms: int
    text: str


def render(
    transcript: Transcript,
    form: str,
    *,
    language: str | None = None,
    duration_seconds: float | None = None,
) -> str:
    """A transcript in a form of MEDIA_TYPES; any other is a KeyError.

    language and duration_seconds are told by json alone. A transcript without speech gives a
    file that is empty but opens.
    """
    if form == "json":
        return _json(transcript, language, duration_seconds)
    return _FORMS[form](transcript)


def paragraphs(transcript: Transcript) -> list[Paragraph]:
    """The segments as paragraphs: a new one after a pause, by another speaker, or when it is long.

    Texts are cleaned and times finite; segments without any text are left out.
    """
    found: list[list[Segment]] = []
    for segment in _clean(transcript.segments):
        if not found or _breaks(found[-1], segment):
            found.append([])
        found[-1].append(segment)
    return [Paragraph(group[0].start, group[0].speaker, group) for group in found]


def clean_text(text: str) -> str:
    """One line of showable characters."""
    return _SPACES.sub(" ", _UNSHOWABLE.sub(" ", text)).strip()


def _breaks(group: Sequence[Segment], segment: Segment) -> bool:
    last = group[-1]
    if segment.speaker != last.speaker or segment.start - last.end >= _PAUSE_SECONDS:
        return True
    is_long = sum(len(part.text) for part in group) >= _PARAGRAPH_LENGTH
    return is_long and last.text.endswith((".", "!", "?", "…", "。"))


def _clean(segments: Sequence[Segment]) -> Iterator[Segment]:
    for segment in segments:
        text = clean_text(segment.text)
        if text:
            start = _finite(segment.start)
            speaker = clean_text(segment.speaker) if segment.speaker else None
            yield Segment(start, max(_finite(segment.end), start), text, speaker or None)


def _finite(seconds: float) -> float:
    return min(max(float(seconds), 0.0), _LATEST_SECONDS) if math.isfinite(seconds) else 0.0


def _txt(transcript: Transcript) -> str:
    blocks = [paragraph.text for paragraph in paragraphs(transcript)]
    if not blocks and (text := clean_text(transcript.text)):
        blocks = [text]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _srt(transcript: Transcript) -> str:
    blocks = []
    for number, cue in enumerate(_cues(transcript.segments), 1):
        # SRT has no escapes: an arrow in the text would read as a line of times.
        lines = [_ARROW.sub("->", line) for line in _lines(cue.text)]
        times = f"{_stamp(cue.start_ms, ',')} --> {_stamp(cue.end_ms, ',')}"
        blocks.append("\n".join([str(number), times, *lines]) + "\n")
    return "\n".join(blocks)


def _vtt(transcript: Transcript) -> str:
    blocks = ["WEBVTT\n"]
    for cue in _cues(transcript.segments):
        lines = [_escape_vtt(line) for line in _lines(cue.text)]
        times = f"{_stamp(cue.start_ms, '.')} --> {_stamp(cue.end_ms, '.')}"
        blocks.append("\n".join([times, *lines]) + "\n")
    return "\n".join(blocks)


def _json(transcript: Transcript, language: str | None, duration_seconds: float | None) -> str:
    segments = [
        {
            "start": round(segment.start, 3),
            "end": round(segment.end, 3),
            "text": segment.text,
            "speaker": segment.speaker,
        }
        for segment in _clean(transcript.segments)
    ]
    whole = {
        "text": _UNSHOWABLE.sub(" ", transcript.text),
        "segments": segments,
        "language": language,
        "duration": duration_seconds,
    }
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


_FORMS: dict[str, Callable[[Transcript], str]] = {"txt": _txt, "srt": _srt, "vtt": _vtt}


def _cues(segments: Sequence[Segment]) -> list[_Cue]:
    """Cues in order that never overlap, each long enough to be shown and short enough to read."""
    raw = [_raw_cue(segment) for segment in _clean(segments)]
    cues: list[_Cue] = []
    free_ms = 0
    for cue, following in pairwise([*raw, None]):
        assert cue is not None  # noqa: S101 - only the last of the pairs holds the None
        start = max(cue.start_ms, free_ms)
        end = cue.end_ms
        if following and following.start_ms > start:
            end = min(end, following.start_ms)
        parts = _parts(cue.text)
        end = max(end, start + _SHORTEST_MS * len(parts))
        cues += _share(start, end, parts)
        free_ms = end
    return cues


def _raw_cue(segment: Segment) -> _Cue:
    return _Cue(round(segment.start * 1000), round(segment.end * 1000), segment.text)


def _parts(text: str) -> list[str]:
    """A text in pieces of at most two lines each."""
    lines = _lines(text)
    return [" ".join(lines[at : at + 2]) for at in range(0, len(lines), 2)]


def _share(start_ms: int, end_ms: int, parts: Sequence[str]) -> Iterator[_Cue]:
    """The time of one long cue, shared among its parts by their length."""
    total = sum(len(part) for part in parts)
    spare = end_ms - start_ms - _SHORTEST_MS * len(parts)
    at, said = start_ms, 0
    for number, part in enumerate(parts, 1):
        said += len(part)
        until = start_ms + _SHORTEST_MS * number + spare * said // total
        yield _Cue(at, until, part)
        at = until


def _lines(text: str) -> list[str]:
    """A text in lines of LINE_LENGTH at most, a word longer than that cut."""
    lines = [""]
    for word in _words(text):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > LINE_LENGTH:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _words(text: str) -> Iterator[str]:
    for word in text.split(" "):
        for at in range(0, len(word), LINE_LENGTH):
            yield word[at : at + LINE_LENGTH]


def _stamp(whole_ms: int, mark: str) -> str:
    seconds, ms = divmod(whole_ms, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}{mark}{ms:03}"


def _escape_vtt(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
