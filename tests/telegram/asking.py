"""A bare client of the Bot API: it asks what no library would, and gives what was answered."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import requests

from tests.telegram.double import Telegram


class Ask(Protocol):
    """Asks a method with arguments; gives the JSON of the answer, whatever its status."""

    def __call__(self, method: str, **arguments: Any) -> dict[str, Any]: ...


@contextmanager
def asking(telegram: Telegram) -> Iterator[Ask]:
    """A client with one connection, for one thread."""
    with requests.Session() as session:

        def ask(method: str, **arguments: Any) -> dict[str, Any]:
            url = f"{telegram.api_url}/bot{telegram.token}/{method}"
            answer = session.post(url, json=arguments, timeout=20)
            said: dict[str, Any] = answer.json()
            assert answer.status_code == said.get("error_code", 200)
            return said

        yield ask


def refusal(answer: dict[str, Any]) -> str:
    """The code and the description of an error."""
    return f"{answer['error_code']} {answer['description']}"
