"""The one form of time and of record ids.

Times are text, `YYYY-MM-DD HH:MM:SS.mmmZ`, UTC, so that comparing bytes compares times (P12).
"""

import re
import secrets
import string
import uuid
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_ID_ALPHABET = string.ascii_lowercase + string.digits
ID_LENGTH = 15
_FAIR_BYTES = 256 // len(_ID_ALPHABET) * len(_ID_ALPHABET)
_UNFAIR_BYTES = bytes(range(_FAIR_BYTES, 256))
_SIGN_OF_BYTE = bytes(ord(_ID_ALPHABET[byte % len(_ID_ALPHABET)]) for byte in range(256))
_TEXT_FORM = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


def utcnow() -> datetime:
    """The present moment, UTC, cut to milliseconds as the store keeps it."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@lru_cache(maxsize=256)
def to_text(moment: datetime) -> str:
    """The stored form of a moment; a naive datetime is a ValueError."""
    if moment.tzinfo is None:
        raise ValueError("a stored time needs a time zone")
    # Not strftime: its %Y writes a year before 1000 with fewer digits, and bytes would compare
    # wrongly.
    utc = moment.astimezone(UTC)
    day = f"{utc.year:04d}-{utc.month:02d}-{utc.day:02d}"
    return f"{day} {utc.hour:02d}:{utc.minute:02d}:{utc.second:02d}.{utc.microsecond // 1000:03d}Z"


@lru_cache(maxsize=1024)
def from_text(text: str) -> datetime:
    """The moment that a stored form names; any other form is a ValueError."""
    if not _TEXT_FORM.fullmatch(text):
        raise ValueError("not a stored time")
    # Not strptime, at three times the cost; nor fromisoformat, which from 3.14 on takes 24:00.
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    return datetime(year, month, day, hour, minute, second, int(text[20:23]) * 1000, UTC)


def to_rfc3339(moment: datetime) -> str:
    """The form of a moment in JSON answers (I06): RFC 3339, UTC, milliseconds."""
    return to_text(moment).replace(" ", "T")


def later(moment: datetime, seconds: float) -> datetime:
    """The moment that many seconds after another; a negative number goes back."""
    return moment + timedelta(seconds=seconds)


def new_id() -> str:
    """A fresh record id: 15 of [a-z0-9] from the system's random source (S03), about 77 bits."""
    # Bytes at once: a choice for each sign asks the kernel 15 times. Those that would make some
    # signs likelier than others are left out; too few remain about once in 10**17.
    signs = b""
    while len(signs) < ID_LENGTH:
        signs = secrets.token_bytes(2 * ID_LENGTH).translate(_SIGN_OF_BYTE, _UNFAIR_BYTES)
    return signs[:ID_LENGTH].decode("ascii")


def new_token() -> str:
    """A fresh secret for a claim, a session or a link: 43 URL-safe characters, 256 bits."""
    return secrets.token_urlsafe(32)


def new_file_stem() -> str:
    """The random part of a stored file's name (S04)."""
    return str(uuid.uuid4())
