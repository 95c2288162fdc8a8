"""What a method is, and what it may answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.telegram.double.query import Query

if TYPE_CHECKING:
    from tests.telegram.double.telegram import Telegram


@dataclass(frozen=True)
class Said:
    """A result that comes with a description."""

    result: Any
    description: str


Method = Callable[["Telegram", Query], Any]
"""Gives the result, a Said, or raises ApiError; it is called under the double's lock."""
