"""What was asked of the double, in order, and what it answered."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.telegram.double.query import Attachment


@dataclass(frozen=True)
class Call:
    """One request; answer is the JSON that was meant for the client, None when none was.

    at is in seconds of the double's clock; fault names what was done to it, if anything was.
    """

    number: int
    at: float
    method: str
    arguments: Mapping[str, str]
    attachments: Mapping[str, Attachment]
    answer: Mapping[str, Any] | None
    fault: str | None = None

    @property
    def is_ok(self) -> bool:
        """True when the double did it, whether or not the client heard so."""
        return bool(self.answer and self.answer.get("ok"))

    @property
    def refusal(self) -> str:
        """The description of an error, empty when there was none."""
        return "" if self.answer is None or self.is_ok else str(self.answer.get("description"))


class Journal:
    """All requests; read it from any thread."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._lock = threading.Lock()

    def add(self, at: float, method: str, **fields: Any) -> None:
        """Write a request down."""
        with self._lock:
            self._calls.append(Call(len(self._calls), at, method, **fields))

    def calls(self, *methods: str) -> Sequence[Call]:
        """The requests of these methods, in any spelling; all of them when none is named."""
        wanted = {method.lower() for method in methods}
        with self._lock:
            return [call for call in self._calls if not wanted or call.method.lower() in wanted]

    def done(self, *methods: str) -> Sequence[Call]:
        """The requests that were carried out."""
        return [call for call in self.calls(*methods) if call.is_ok]

    def refusals(self) -> Sequence[str]:
        """What was refused, each as `method: description`."""
        return [f"{call.method}: {call.refusal}" for call in self.calls() if call.refusal]

    def impatient(self) -> Sequence[Call]:
        """Requests that came while a 429 had asked to wait, getUpdates and files aside."""
        found, until = [], 0.0
        for call in self.calls():
            if call.method.lower() in ("getupdates", "file"):
                continue
            if call.at < until:
                found.append(call)
            parameters = (call.answer or {}).get("parameters", {})
            until = max(until, call.at + parameters.get("retry_after", 0))
        return found
