"""Trouble to order: what a network and a busy Telegram do to a request, by method and count.

A fault with after=True comes when the request was carried out: only its answer is lost.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from tests.telegram.double.errors import ApiError, too_many

EVERY_METHOD = "*"
FILE = "file"
"""The name that the download of a file goes by."""

_HTML = "<html>\r\n<head><title>{0}</title></head>\r\n<body><h1>{0}</h1></body>\r\n</html>\r\n"
_GARBAGE = b'{"ok":tru\xff\xfe<<<'
_REASONS = {500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable"}


@dataclass
class Fault:
    """One order; times counts down, None stands until it is called off.

    A body, when there is one, goes out instead of the answer; cut is how many bytes of an answer
    go before the line drops; drip is its seconds a byte.
    """

    name: str
    method: str
    times: int | None
    after: bool = False
    body: bytes | None = None
    status: int = 200
    media_type: str = "application/json"
    error: ApiError | None = None
    is_silent: bool = False
    is_reset: bool = False
    cut: int | None = None
    drip: float | None = None
    gate: "Gate | None" = None
    arguments: Mapping[str, str] = field(default_factory=dict)


class Which(TypedDict, total=False):
    """Which requests: arguments, as text, that must be theirs. after: once it is carried out."""

    after: bool
    arguments: Mapping[str, str]


class Gate:
    """Holds requests until let go: the moment in which to kill a client."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._open = threading.Event()

    def wait_reached(self, seconds: float = 20) -> None:
        """Until a request stands at the gate; AssertionError when none comes."""
        assert self._reached.wait(seconds), f"no request came to the gate within {seconds} s"

    def let_go(self) -> None:
        """Let what waits, and all that comes, through."""
        self._open.set()

    def pass_through(self) -> None:
        """Stand at the gate; the server does."""
        self._reached.set()
        self._open.wait()


class Faults:
    """The orders, the oldest first; each method of ordering gives the order, for call_off."""

    def __init__(self) -> None:
        self._orders: list[Fault] = []
        self._gates: list[Gate] = []
        self._lock = threading.Lock()
        self._released = threading.Event()

    def silence(
        self, method: str = EVERY_METHOD, times: int | None = 1, **more: Unpack[Which]
    ) -> Fault:
        """The request is taken and never answered."""
        return self._add(Fault("silence", method, times, is_silent=True, **more))

    def reset(
        self, method: str = EVERY_METHOD, times: int | None = 1, **more: Unpack[Which]
    ) -> Fault:
        """The connection is reset."""
        return self._add(Fault("reset", method, times, is_reset=True, **more))

    def page(
        self,
        method: str = EVERY_METHOD,
        times: int | None = 1,
        status: int = 502,
        **more: Unpack[Which],
    ) -> Fault:
        """A proxy's HTML page, as in 502 Bad Gateway."""
        text = _HTML.format(f"{status} {_REASONS.get(status, 'Error')}").encode()
        fault = Fault(
            "page", method, times, body=text, status=status, media_type="text/html", **more
        )
        return self._add(fault)

    def garbage(
        self,
        method: str = EVERY_METHOD,
        times: int | None = 1,
        body: bytes = _GARBAGE,
        **more: Unpack[Which],
    ) -> Fault:
        """200 with something that is no JSON, or JSON that is no answer."""
        return self._add(Fault("garbage", method, times, body=body, **more))

    def cut_off(
        self, method: str = EVERY_METHOD, times: int | None = 1, at: int = 10, **more: Unpack[Which]
    ) -> Fault:
        """The true answer, broken off after so many bytes; the request was carried out."""
        more["after"] = True
        return self._add(Fault("cut off", method, times, cut=at, **more))

    def drip(
        self,
        method: str = EVERY_METHOD,
        times: int | None = 1,
        seconds_a_byte: float = 0.5,
        **more: Unpack[Which],
    ) -> Fault:
        """The true answer, byte by byte; the request was carried out."""
        more["after"] = True
        return self._add(Fault("drip", method, times, drip=seconds_a_byte, **more))

    def flood(
        self,
        method: str = EVERY_METHOD,
        times: int | None = 1,
        retry_after: int = 3,
        **more: Unpack[Which],
    ) -> Fault:
        """429 with retry_after, in seconds."""
        return self._add(Fault("flood", method, times, error=too_many(retry_after), **more))

    def refuse(
        self,
        code: int,
        description: str,
        method: str = EVERY_METHOD,
        times: int | None = 1,
        **more: Unpack[Which],
    ) -> Fault:
        """Any error of the original's form."""
        error = ApiError(code, description)
        return self._add(Fault("refuse", method, times, error=error, **more))

    def hold(self, method: str, times: int | None = 1, **more: Unpack[Which]) -> Gate:
        """Stop requests at a gate: before they are carried out, or with after=True behind that."""
        gate = Gate()
        self._gates.append(gate)
        self._add(Fault("hold", method, times, gate=gate, **more))
        return gate

    def call_off(self, fault: Fault | None = None) -> None:
        """End one order, or all of them; who is kept in silence stays so."""
        with self._lock:
            self._orders = [] if fault is None else [o for o in self._orders if o is not fault]

    def take(self, method: str, arguments: Mapping[str, str]) -> Fault | None:
        """The order that a request falls under, counted; the server asks."""
        with self._lock:
            for order in self._orders:
                if _is_meant(order, method, arguments):
                    if order.times is not None:
                        order.times -= 1
                        if order.times <= 0:
                            self._orders.remove(order)
                    return order
        return None

    def keep_silent(self) -> None:
        """Until the double closes."""
        self._released.wait()

    def is_released(self, seconds: float) -> bool:
        """Wait so long; True when the double closes meanwhile."""
        return self._released.wait(seconds)

    def release(self) -> None:
        """Let go of everything: the double closes."""
        for gate in self._gates:
            gate.let_go()
        self._released.set()

    def _add(self, fault: Fault) -> Fault:
        with self._lock:
            self._orders.append(fault)
        return fault


def _is_meant(order: Fault, method: str, arguments: Mapping[str, str]) -> bool:
    is_method = order.method == EVERY_METHOD or order.method.lower() == method.lower()
    return is_method and all(arguments.get(key) == value for key, value in order.arguments.items())
