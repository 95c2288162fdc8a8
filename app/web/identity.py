"""Who asks: a signed-in owner by cookie, a program by bearer token, or nobody.

The cookie holds the secret of a row in `sessions` and nothing else. Flask-Login asks for it at
each request; its own signed cookie is not used, since a signed cookie outlives the log-out.
"""

from flask import Flask, Request, Response, g, request
from flask_login import LoginManager, UserMixin, current_user

from app.clock import new_token
from app.intake import OWNER_PREFIX
from app.owners import ApiToken, Session
from app.web import htmx
from app.web.services import now, services

_BEARER = "bearer "


class SignedIn(UserMixin):  # type: ignore[misc]  # flask-login ships no types
    """The owner of a live session, as Flask-Login knows a user."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.id = session.owner


def install(app: Flask) -> None:
    """Teach the app to tell who asks; `signed_in` and `owner_name` are in every template."""
    # Nothing of ours is signed with this: Flask-Login checks a remember-cookie, which we never
    # give but anybody may send, and without a key that ends in an internal error.
    app.secret_key = new_token()
    manager = LoginManager(app)
    manager.session_protection = None
    manager.request_loader(_load)
    app.context_processor(_in_templates)


def session() -> Session | None:
    """The live session of the owner who asks; None for everybody else."""
    return current_user.session if isinstance(_user(), SignedIn) else None


def owner_session() -> Session:
    """The session of a view that only the owner reaches."""
    found = session()
    assert found is not None  # noqa: S101 - app.web.access lets nobody else in
    return found


def token() -> ApiToken | None:
    """The token of the program that asks; None when it brings none that works."""
    if "token" not in g:
        secret = bearer(request.headers.get("Authorization", ""))
        g.token = services().owners.tokens.find(secret, now()) if secret else None
    found: ApiToken | None = g.token
    return found


def sender() -> str:
    """Who hands in, as a job keeps it."""
    if found := token():
        return f"token:{found.id}"
    if signed_in := session():
        return f"{OWNER_PREFIX}{signed_in.owner}"
    return "anonymous"


def bearer(authorization: str) -> str:
    """The secret in an Authorization header; empty when it brings none."""
    if authorization[: len(_BEARER)].lower() != _BEARER:
        return ""
    return authorization[len(_BEARER) :].strip()


def cookie_name(is_https: bool) -> str:
    """The session cookie's name: over https its prefix binds it to this very host."""
    return "__Host-pisar" if is_https else "pisar"


def remember(response: Response, secret: str) -> Response:
    """Put a session's secret into the browser."""
    is_https = _is_https()
    response.set_cookie(
        cookie_name(is_https),
        secret,
        max_age=services().settings.panel.session_lifetime,
        secure=is_https,
        httponly=True,
        samesite="Lax",
        path="/",
    )
    return response


def forget(response: Response) -> Response:
    """Take the session's secret out of the browser."""
    is_https = _is_https()
    response.delete_cookie(
        cookie_name(is_https), secure=is_https, httponly=True, samesite="Lax", path="/"
    )
    return response


def has_cookie() -> bool:
    """True when the browser sent something in place of a session's secret."""
    return bool(_cookie(request))


def _load(asked: Request) -> SignedIn | None:
    # A program that brings a token is judged by the token alone, never by a cookie beside it.
    if "Authorization" in asked.headers:
        return None
    sessions = services().owners.sessions
    found = sessions.find(_cookie(asked), now())
    if found is None:
        return None
    # A page that is only left open polls by itself: that is not the owner being there.
    if not (htmx.is_htmx() and asked.method == "GET"):
        sessions.touch(found, now())
    return SignedIn(found)


def _cookie(asked: Request) -> str:
    return asked.cookies.get(cookie_name(_is_https()), "")


def _user() -> object:
    return current_user._get_current_object()


def _is_https() -> bool:
    return services().settings.server.public_url.startswith("https:")


def _in_templates() -> dict[str, object]:
    found = session()
    return {"signed_in": found is not None, "owner_name": found.owner_name if found else ""}
