"""The name a browser saves a file under: the sender's own, made harmless."""

import re
from urllib.parse import quote

from app.intake import clean_name

LONGEST_BYTES = 240
"""File systems take names of 255 bytes; browsers add ` (1)` and `.part`."""

_LONGEST_EXTENSION = 16
_PATH_MARKS = re.compile(r'[/\\:*?"<>|]')
_NAMELESS = "recording"


def attachment(name: str) -> str:
    """The Content-Disposition of a file to be saved under this name."""
    return f"attachment; {_parameters(name)}"


def inline(name: str) -> str:
    """The Content-Disposition of a file to be shown or played, which may be saved so."""
    return f"inline; {_parameters(name)}"


def stem(name: str) -> str:
    """A file name without its extension."""
    before, dot, extension = name.rpartition(".")
    return before if dot and before and len(extension) < _LONGEST_EXTENSION else name


def safe_name(name: str) -> str:
    """A file name that leads nowhere: no path, no control or direction marks, bounded."""
    flat = _PATH_MARKS.sub("_", clean_name(name)).strip(". ") or _NAMELESS
    base = stem(flat)
    extension = flat[len(base) :]
    room = LONGEST_BYTES - len(extension.encode())
    return base.encode()[:room].decode(errors="ignore") + extension


def _parameters(name: str) -> str:
    """Both forms of RFC 6266: an ASCII one for old programs, the true one for all others."""
    safe = safe_name(name)
    ascii_name = re.sub(r"[^\x20-\x7e]", "_", safe).replace("%", "_")
    return f"filename=\"{ascii_name}\"; filename*=UTF-8''{quote(safe, safe='')}"
