"""Who may ask for what: every view names its rule, and one that names none is the owner's.

@blueprint.get("/jobs/<job_id>")
@allow(knows_id)
def page(job_id: str) -> ...
"""

from collections.abc import Callable
from typing import TypeVar

from flask import Flask, current_app, request

from app.chats import Links
from app.errors import AppError
from app.owners import Scope
from app.web import identity
from app.web.services import now, services

Rule = Callable[[], None]
View = TypeVar("View", bound=Callable[..., object])
_RULE = "access_rule"


def allow(rule: Rule) -> Callable[[View], View]:
    """Give a view its rule; put it under the route's decorator."""

    def mark(view: View) -> View:
        setattr(view, _RULE, rule)
        return view

    return mark


def install(app: Flask) -> None:
    """Judge every request before its view; unknown addresses are told apart from nothing."""
    setattr(app.view_functions["static"], _RULE, anyone)
    app.before_request(_judge)


def rule_of(app: Flask, endpoint: str) -> Rule:
    """The rule of a view."""
    rule: Rule = getattr(app.view_functions[endpoint], _RULE, owner)
    return rule


def anyone() -> None:
    """Everybody: signs of life, the way in, what holds nothing of anybody's."""


def knows_id() -> None:
    """Everybody who knows the record's id, and for a file its name too (S09, S10)."""


def owner() -> None:
    """The signed-in owner."""
    if identity.session() is None:
        raise AppError("forbidden" if identity.token() else "sign_in")


def reads() -> None:
    """The owner, or a program with the scope `read`; anybody else gets 403 (S08)."""
    if not (_has(Scope.READ) or identity.session()):
        raise AppError("forbidden")


def manages() -> None:
    """The owner, or a program with the scope `manage`."""
    if _has(Scope.MANAGE) or identity.session():
        return
    raise AppError("forbidden" if identity.token() else "sign_in")


def hands_in() -> None:
    """Whoever may hand in a recording (I07)."""
    if services().settings.intake_is_open or _has(Scope.INTAKE) or identity.session():
        return
    raise AppError("forbidden" if identity.token() else "token_required")


def holds_link() -> None:
    """Whoever was given an upload link; one that is used up leads to its job still."""
    secret = (request.view_args or {}).get("secret", "")
    if Links(services().database).find(secret, now()) is None:
        raise AppError("link_over")


def is_intake() -> bool:
    """True when this request may bring a recording: its file goes straight to the storage."""
    endpoint = request.endpoint
    return endpoint is not None and rule_of(current_app, endpoint) in (hands_in, holds_link)


def _judge() -> None:
    if request.endpoint is None:
        return
    if "Authorization" in request.headers and identity.token() is None:
        raise AppError("bad_token")
    rule_of(current_app, request.endpoint)()


def _has(scope: Scope) -> bool:
    token = identity.token()
    return token is not None and scope in token.scopes
