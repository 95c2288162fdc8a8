"""From words with times to sentences, and from sentences to text that reads well."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.job import Segment

_SENTENCE_ENDS = (".", "?", "!", "…")
_WIDE_SENTENCE_ENDS = ("。", "？", "！")  # written without a space after them
_CLAUSE_ENDS = (",", ";", ":")
_CLOSERS = "\"'»”’)]"
_TITLES = frozenset({"mr.", "mrs.", "ms.", "dr.", "st.", "prof.", "jr."})

_LONG_SECONDS = 12.0
"""A longer sentence is cut at its next comma: a subtitle must fit the eye."""
_LONGEST_SECONDS = 24.0
"""A sentence of this length is cut anywhere."""
_PAUSE_SECONDS = 2.0
"""A pause between words that ends a sentence even without a mark."""
_PARAGRAPH_PAUSE_SECONDS = 3.0
_PARAGRAPH_CHARACTERS = 600


class Word(NamedTuple):
    """A recognized word: seconds, and its text with the space before it and its punctuation."""

    start: float
    end: float
    text: str


def sentences(words: Sequence[Word]) -> Iterator[Segment]:
    """Cut words at the ends of sentences, long ones at commas, endless ones anywhere."""
    current: list[Word] = []
    for index, word in enumerate(words):
        current.append(word)
        following = words[index + 1] if index + 1 < len(words) else None
        if _is_last(word, following, seconds=word.end - current[0].start):
            yield _sentence(current)
            current = []


def _is_last(word: Word, following: Word | None, *, seconds: float) -> bool:
    if following is None or following.start - word.end > _PAUSE_SECONDS:
        return True
    if seconds > _LONGEST_SECONDS:
        return True
    text = word.text.strip().rstrip(_CLOSERS)
    if seconds > _LONG_SECONDS and text.endswith(_CLAUSE_ENDS):
        return True
    # "3." before "5" without a space is a number, not an end.
    starts_anew = following.text.startswith(" ")
    return text.endswith(_WIDE_SENTENCE_ENDS) or (starts_anew and _ends_sentence(text))


def _ends_sentence(text: str) -> bool:
    is_initial = len(text) == 2 and text[0].isalpha() and text != "I."
    return text.endswith(_SENTENCE_ENDS) and not is_initial and text.lower() not in _TITLES


def _sentence(words: Sequence[Word]) -> Segment:
    return Segment(words[0].start, words[-1].end, "".join(word.text for word in words).strip())


def in_order(segments: Sequence[Segment], *, start: float, end: float) -> list[Segment]:
    """Put times right: milliseconds, one after the other, none empty, all within start and end.

    The engine aligns each window by itself, so times may overlap at borders or pass the end of
    the sound. A segment that no room is left for goes into the one before it.
    """
    placed: list[Segment] = []
    here, last = _milliseconds(start), int(end * 1000)
    for segment in segments:
        if not segment.text:
            continue
        begins = max(here, min(_milliseconds(segment.start), last - 1))
        ends = min(max(_milliseconds(segment.end), begins + 1), last)
        if ends > begins:
            placed.append(Segment(begins / 1000, ends / 1000, segment.text, segment.speaker))
            here = ends
        elif placed:
            before = placed[-1]
            text = f"{before.text} {segment.text}"
            placed[-1] = Segment(before.start, before.end, text, before.speaker)
    return placed


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def readable(segments: Sequence[Segment]) -> str:
    """One text: sentences joined into paragraphs, a new one after a pause or when it grew long."""
    paragraphs: list[str] = []
    before: Segment | None = None
    for segment in segments:
        if before is None or _begins_paragraph(segment, before, len(paragraphs[-1])):
            paragraphs.append(segment.text)
        else:
            paragraphs[-1] = f"{paragraphs[-1]} {segment.text}"
        before = segment
    return "\n\n".join(paragraphs)


def _begins_paragraph(segment: Segment, before: Segment, length: int) -> bool:
    if segment.start - before.end >= _PARAGRAPH_PAUSE_SECONDS:
        return True
    is_whole = before.text.rstrip(_CLOSERS).endswith(_SENTENCE_ENDS + _WIDE_SENTENCE_ENDS)
    return is_whole and length >= _PARAGRAPH_CHARACTERS
