"""What the converter finds out about a recording."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """Seconds of sound decoded, and what the recording came as.

    header_seconds is the length that the file claims, None when it claims none. is_playable
    means that a browser plays it as it came, and seeks to where the text says.
    """

    seconds: float
    header_seconds: float | None
    container: str
    codec: str
    has_video: bool
    is_playable: bool
