"""A long text as messages: cut at sentence ends, in Telegram's own measure.

Telegram counts UTF-16 code units (core.telegram.org/api/entities#entity-length).
Nothing is added and nothing left out: the parts, one after another, are the text.
"""

import re
import unicodedata
from collections.abc import Sequence

# From the best place to cut at to the worst; each match is cut behind.
_CUTS = (
    re.compile(r"\n\s*\n\s*"),
    re.compile(r"[.!?…。！？]+[\"'»”’)\]]*\s+|\n\s*"),
    re.compile(r"\s+"),
)
# Longer gaps than any writer means: a message of them alone would be an empty one.
_GAP = re.compile(r"\s{50,}")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
# A part much shorter than it could be makes more messages than a better cut is worth.
_LEAST_FILLED = 0.5


def length(text: str) -> int:
    """How long Telegram finds a text."""
    return len(text) + sum(character > "\uffff" for character in text)


def clean(text: str) -> str:
    """The text as it can be sent: no halves of characters, no void, nothing around it."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _GAP.sub("\n\n", whole.replace("\0", "")).strip()


def split(text: str, limit: int) -> Sequence[str]:
    """The parts of a clean text, each at most so long; none is without a visible sign."""
    parts = []
    while length(text) > limit:
        cut = _cut(text, limit)
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text] if text else parts


def beginning(text: str, limit: int) -> str:
    """The first sentences of a clean text, with a sign that it goes on when it does."""
    if length(text) <= limit:
        return text
    return text[: _cut(text, limit - 2)].rstrip() + " …"


def _cut(text: str, limit: int) -> int:
    """Where to cut: the last best place of what fits."""
    most = _fitting(text, limit)
    # What comes behind a cut must not be space alone, which Telegram calls an empty message.
    window = text[: most + 1]
    for pattern in _CUTS:
        ends = [found.end() for found in pattern.finditer(window) if found.end() <= most]
        good = [end for end in ends if end >= most * _LEAST_FILLED and text[:end].strip()]
        if good:
            return good[-1]
    return _whole_signs(text, most)


def _fitting(text: str, limit: int) -> int:
    """How many characters fit."""
    units = 0
    for number, character in enumerate(text):
        units += 2 if character > "\uffff" else 1
        if units > limit:
            return number
    return len(text)


def _whole_signs(text: str, most: int) -> int:
    """Not between a letter and its accent, nor inside a joined sign, where that can be."""
    cut = most
    while cut > most // 2 and (
        text[cut] in _JOINERS or unicodedata.combining(text[cut]) or text[cut - 1] == "\u200d"
    ):
        cut -= 1
    return cut if cut > most // 2 else most
