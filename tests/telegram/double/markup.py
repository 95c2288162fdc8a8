"""Texts of the bot's: their length, their marks, and what is refused of them.

Source: the original's get_formatted_text, td's MessageEntity.cpp and reports of its users. What
marks make of a text is not worked out beyond taking them away.
"""

import html
import re

from tests.telegram.double.errors import ApiError, bad_request
from tests.telegram.double.query import Query

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
_MOST_BYTES = 1 << 15

_TAG = re.compile(r"<(/?)([a-zA-Z0-9-]*)([^<>]*)(>?)")
_TAGS = frozenset(
    (
        "a",
        "b",
        "blockquote",
        "code",
        "del",
        "em",
        "i",
        "ins",
        "pre",
        "s",
        "span",
        "strike",
        "strong",
        "tg-emoji",
        "tg-spoiler",
        "tg-time",
        "u",
    )
)
_RESERVED = "]()>#+-=|{}.!"
_PAIRS = {"*": "Bold", "__": "Underline", "_": "Italic", "~": "Strikethrough", "||": "Spoiler"}
_CODES = {"```": "Pre", "`": "Code"}
_LINK = re.compile(r"\[((?:\\.|[^\]\\])*)\]\(((?:\\.|[^)\\])*)\)")


def text_of(query: Query) -> str:
    """The text of sendMessage or editMessageText; ApiError for one that is empty or malformed."""
    if not query.text("text"):
        raise bad_request("message text is empty")
    return _parsed(query.text("text"), query.text("parse_mode"))


def caption_of(query: Query) -> str:
    """The caption of a file; ApiError as for a text."""
    return _parsed(query.text("caption"), query.text("parse_mode"))


def trimmed(text: str) -> str:
    """A text as Telegram keeps it: no returns, no space around it."""
    return text.replace("\r", "").replace("\0", "").strip(" \n\t")


def length(text: str) -> int:
    """Its length as Telegram counts: in UTF-16 units, so an emoji is two."""
    return len(text.encode("utf-16-le")) // 2


def _parsed(text: str, mode: str) -> str:
    if len(text.encode()) > _MOST_BYTES:
        raise bad_request("Text is too long")
    mode = mode.lower()
    if not text or mode in ("", "none"):
        return text
    if mode == "html":
        return _parse_html(text)
    if mode == "markdownv2":
        return _parse_markdown_v2(text)
    if mode == "markdown":
        return _parse_markdown(text)
    raise bad_request("Unsupported parse_mode")


def _unparsable(reason: str) -> ApiError:
    return bad_request(f"Can't parse entities: {reason}")


def _offset(text: str, position: int) -> int:
    return len(text[:position].encode())


def _parse_html(text: str) -> str:
    is_open: list[str] = []
    for found in _TAG.finditer(text):
        at = _offset(text, found.start())
        closes, name, _, end = found.groups()
        if not end:
            raise _unparsable(f"Unclosed start tag at byte offset {at}")
        if closes:
            if not is_open:
                raise _unparsable(f"Unexpected end tag at byte offset {at}")
            if name and name.lower() != is_open[-1]:
                expected = f'expected "</{is_open[-1]}>", found "</{name}>"'
                raise _unparsable(f"Unmatched end tag at byte offset {at}, {expected}")
            is_open.pop()
        elif name.lower() not in _TAGS:
            raise _unparsable(f'Unsupported start tag "{name.lower()}" at byte offset {at}')
        else:
            is_open.append(name.lower())
    if is_open:
        raise _unparsable(f'Can\'t find end tag corresponding to start tag "{is_open[-1]}"')
    return html.unescape(_TAG.sub("", text))


def _parse_markdown(text: str) -> str:
    """The old kind: one mark at a time, none within another."""
    said, at = [], 0
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] in tuple("_*`["):
            said.append(text[at + 1])
            at += 2
        elif text[at] in "_*`[":
            mark = "```" if text.startswith("```", at) else text[at]
            start = at + len(mark)
            end = text.find("]" if mark == "[" else mark, start)
            if end < 0:
                reason = f"Can't find end of the entity starting at byte offset {_offset(text, at)}"
                raise _unparsable(reason)
            said.append(text[start:end])
            at = end + len(mark)
            if mark == "[" and text.startswith("(", at) and ")" in text[at:]:
                at = text.index(")", at) + 1
        else:
            said.append(text[at])
            at += 1
    return "".join(said)


def _parse_markdown_v2(text: str) -> str:
    said: list[str] = []
    is_open: list[tuple[str, int]] = []
    at = 0
    while at < len(text):
        code = next((mark for mark in _CODES if text.startswith(mark, at)), None)
        pair = next((mark for mark in ("__", "||", *"*_~") if text.startswith(mark, at)), None)
        link = _LINK.match(text, at)
        if text[at] == "\\" and text[at + 1 : at + 2] and ord(text[at + 1]) < 127:
            said.append(text[at + 1])
            at += 2
        elif code:
            end = text.find(code, at + len(code))
            if end < 0:
                raise _endless(_CODES[code], text, at)
            said.append(text[at + len(code) : end])
            at = end + len(code)
        elif pair:
            if is_open and is_open[-1][0] == pair:
                is_open.pop()
            else:
                is_open.append((pair, at))
            at += len(pair)
        elif link:
            said.append(re.sub(r"\\(.)", r"\1", link[1]))
            at = link.end()
        elif text[at] == ">" and (at == 0 or text[at - 1] == "\n"):
            at += 1
        elif text[at] in _RESERVED or text[at] == "[":
            raise _unparsable(
                f"Character '{text[at]}' is reserved and must be escaped with the preceding '\\'"
            )
        else:
            said.append(text[at])
            at += 1
    if is_open:
        raise _endless(_PAIRS[is_open[-1][0]], text, is_open[-1][1])
    return "".join(said)


def _endless(name: str, text: str, at: int) -> ApiError:
    return _unparsable(f"Can't find end of {name} entity at byte offset {_offset(text, at)}")
