"""What is refused by a request's headers alone, before its body is received.

The server receives a whole body before a view sees the request: without this, a stranger could
fill the disk with 8 GiB only to be told then that he may not hand in.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from werkzeug.http import parse_cookie

from app.chats import Links
from app.owners import Owners, Scope
from app.settings import Settings
from app.web.identity import bearer, cookie_name

SMALL_BODY_BYTES = 1024**2
"""The longest body of a request that brings no recording."""

FRAME_BYTES = 1024**2
"""What a form adds around its recording: boundaries, names, the other fields."""

INTAKE_PATHS = frozenset({"/", "/api/jobs"})
"""Where recordings are posted to; a test compares them with the views' rules."""

LINK_PATH = "/u/"
"""What the address of an upload link begins with; its secret follows."""


class Gate:
    """Judges requests by method, path and headers; it only reads, and never waits for a writer."""

    def __init__(
        self, settings: Settings, owners: Owners, links: Links, clock: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._owners = owners
        self._links = links
        self._clock = clock
        self._cookie = cookie_name(settings.server.public_url.startswith("https:"))

    @property
    def largest_body_bytes(self) -> int:
        """The longest body that any request may have."""
        return int(self._settings.intake.max_size) + FRAME_BYTES

    def is_intake(self, method: str, path: str) -> bool:
        """True for a request that may bring a recording."""
        return method == "POST" and (path in INTAKE_PATHS or path.startswith(LINK_PATH))

    def refuses_sender(self, path: str, headers: Mapping[str, str]) -> str | None:
        """The error code for a sender who may not hand in here; None lets it through.

        Header names come as the server has them: capitals and underscores.
        """
        if path.startswith(LINK_PATH):
            link = self._links.find(path.removeprefix(LINK_PATH), self._clock())
            return "link_over" if link is None or link.is_used else None
        authorization = headers.get("AUTHORIZATION")
        if authorization is not None:
            return self._refuses_token(bearer(authorization))
        if self._settings.intake_is_open or self._is_owner(headers.get("COOKIE", "")):
            return None
        return "token_required"

    def _refuses_token(self, secret: str) -> str | None:
        token = self._owners.tokens.peek(secret)
        if token is None:
            return "bad_token"
        if self._settings.intake_is_open or Scope.INTAKE in token.scopes:
            return None
        return "forbidden"

    def _is_owner(self, cookies: str) -> bool:
        secret = parse_cookie(cookies).get(self._cookie, "")
        return self._owners.sessions.find(secret, self._clock()) is not None
