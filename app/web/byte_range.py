"""Which bytes of a file are asked for (RFC 9110, section 14): one range, or the whole."""

from dataclasses import dataclass

from werkzeug.datastructures import Headers
from werkzeug.http import parse_if_range_header, parse_range_header

from app.errors import AppError


@dataclass(frozen=True)
class ByteRange:
    """Bytes start to stop, stop not included; is_part is False for a whole file."""

    start: int
    stop: int
    is_part: bool

    @property
    def length(self) -> int:
        """How many bytes it is."""
        return self.stop - self.start


class UnsatisfiableError(AppError):
    """bad_range: the file ends before the range begins."""

    def __init__(self) -> None:
        super().__init__("bad_range")


def wanted(headers: Headers, size: int, etag: str) -> ByteRange:
    """The range that a request asks for.

    Several ranges at once, a unit other than bytes, nonsense and an If-Range of another version
    all give the whole file, as the standard allows.
    """
    whole = ByteRange(0, size, is_part=False)
    asked = parse_range_header(headers.get("Range"))
    if asked is None or asked.units != "bytes" or len(asked.ranges) != 1:
        return whole
    condition = headers.get("If-Range")
    if condition and parse_if_range_header(condition).etag != etag:
        return whole
    start, stop = asked.ranges[0]
    if start < 0:
        start = max(size + start, 0)
    if start >= size:
        raise UnsatisfiableError
    return ByteRange(start, size if stop is None else min(stop, size), is_part=True)
