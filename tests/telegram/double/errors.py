"""Refusals in the words and numbers of the original.

Source: the original's own code (github.com/tdlib/telegram-bot-api, Client.cpp, function
fail_query_with_error) and, for what Telegram's servers say, reports of its users.
"""

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """An answer with ok false; parameters are its retry_after or migrate_to_chat_id."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def body(self) -> Mapping[str, Any]:
        """The JSON object that the original sends."""
        said = {"ok": False, "error_code": self.code, "description": self.description}
        return {**said, "parameters": self.parameters} if self.parameters else said


def bad_request(text: str, **parameters: int) -> ApiError:
    """400; the first letter is made small unless the text is a constant such as QUOTE_INVALID."""
    return ApiError(400, f"Bad Request: {_uncapitalized(text)}", **parameters)


def forbidden(text: str) -> ApiError:
    """403: the bot may not write there."""
    return ApiError(403, f"Forbidden: {text}")


def conflict(text: str) -> ApiError:
    """409: updates are asked for in two ways at once."""
    return ApiError(409, f"Conflict: {text}")


def too_many(retry_after_seconds: int) -> ApiError:
    """429: come back in so many seconds."""
    text = f"Too Many Requests: retry after {retry_after_seconds}"
    return ApiError(429, text, retry_after=retry_after_seconds)


def _uncapitalized(text: str) -> str:
    is_constant = len(text) > 1 and (text[1] == "_" or text[1].isupper())
    return text if is_constant else text[:1].lower() + text[1:]
