"""What goes round every request: no orders from other sites, strict headers on every answer."""

from urllib.parse import urlsplit

from flask import Flask, Response, request

from app.errors import AppError
from app.web import identity

REFUSAL = "pisar.refusal"
"""The environ key by which the server passes on a refusal it made by the headers alone."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "media-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    # `no-referrer` would make the browser send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def install(app: Flask) -> None:
    """Set the guard before every view and behind every answer; install it before app.web.access."""
    app.before_request(_refuse)
    app.after_request(_harden)


def is_foreign(method: str, site: str, origin: str, host: str, has_cookie: bool) -> bool:
    """True for an order that another site may have made the browser give.

    site is Sec-Fetch-Site, which browsers send and scripts cannot set; over plain http on a
    local network they leave it out, so that the Origin has to name our own host. Without both
    it is a program, and a program has no cookie of ours.
    """
    if method in _SAFE:
        return False
    if site:
        return site not in ("same-origin", "none")
    if origin:
        return urlsplit(origin).netloc.lower() != host.lower()
    return has_cookie


def _refuse() -> None:
    refusal = request.environ.get(REFUSAL)
    if refusal:
        raise AppError(refusal)
    # No site can make a browser send a token that it does not know.
    if "Authorization" in request.headers:
        return
    if is_foreign(
        request.method,
        request.headers.get("Sec-Fetch-Site", ""),
        request.headers.get("Origin", ""),
        request.host,
        identity.has_cookie(),
    ):
        raise AppError("cross_site")


def _harden(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.add("Vary", "Cookie, HX-Request, Accept-Language")
    return response
