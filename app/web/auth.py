"""Signing in and out, the invitation, and the owner's account."""

from collections.abc import Callable

from flask import Blueprint, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.errors import AppError
from app.owners import Scope, TooManyTriesError
from app.owners.secrets import MIN_PASSWORD_LENGTH
from app.web import errors, identity
from app.web.access import allow, anyone
from app.web.identity import owner_session
from app.web.next_page import local_or
from app.web.services import now, services

blueprint = Blueprint("auth", __name__)


@blueprint.get("/login")
@allow(anyone)
def login() -> BaseResponse:
    """The sign-in page; an owner who is signed in already goes on."""
    if identity.session():
        return redirect(_next(), 303)
    return _login_page(None)


@blueprint.post("/login")
@allow(anyone)
def sign_in() -> BaseResponse:
    """Start a session under a new id; whatever was in the cookie before ends."""
    owners = services().owners
    try:
        owner = owners.verify(
            request.form.get("name", ""),
            request.form.get("password", ""),
            request.remote_addr or "",
            now(),
        )
    except AppError as error:
        return _login_page(error)
    return _signed_in(owner.id, _next())


@blueprint.post("/logout")
def logout() -> BaseResponse:
    """End this session: its row goes, so that a copy of the cookie is worth nothing."""
    session = owner_session()
    services().owners.sessions.end(session.owner, session.id)
    return identity.forget(make_response(redirect(url_for("auth.login"), 303)))


@blueprint.get("/setup")
@allow(anyone)
def setup() -> BaseResponse:
    """The invitation's page; its secret is in the fragment, which no server and no log sees."""
    if services().owners.exists():
        raise AppError("not_found")
    return _setup_page(None)


@blueprint.post("/setup")
@allow(anyone)
def accept_invitation() -> BaseResponse:
    """Make the owner of an invitation and sign in."""
    form = request.form
    try:
        owner = services().owners.accept_invitation(
            form.get("invitation", "").strip(),
            form.get("name", ""),
            form.get("password", ""),
            now(),
        )
    except AppError as error:
        return _setup_page(error)
    return _signed_in(owner.id, "/")


@blueprint.get("/account")
def account() -> BaseResponse:
    """Password, sessions and tokens."""
    return _account_page()


@blueprint.post("/account/password")
def change_password() -> BaseResponse:
    """Set a new password; every other session ends."""
    session = owner_session()
    form = request.form
    return _changed(
        "password",
        lambda: services().owners.change_password(
            session.owner,
            form.get("current", ""),
            form.get("password", ""),
            session.id,
            request.remote_addr or "",
            now(),
        ),
    )


@blueprint.post("/account/sessions/<session_id>/end")
def end_session(session_id: str) -> BaseResponse:
    """Sign out one session; one's own too."""
    services().owners.sessions.end(owner_session().owner, session_id)
    return redirect(url_for("auth.account"), 303)


@blueprint.post("/account/sessions/end-others")
def end_other_sessions() -> BaseResponse:
    """Sign out everywhere else."""
    session = owner_session()
    services().owners.sessions.end_others(session.owner, session.id)
    return redirect(url_for("auth.account"), 303)


@blueprint.post("/account/tokens")
def create_token() -> BaseResponse:
    """Make a token; its secret is on this one answer and never again."""
    try:
        scopes = {Scope(word) for word in request.form.getlist("scope")}
    except ValueError:
        raise AppError("bad_request") from None
    try:
        _, secret = services().owners.tokens.create(request.form.get("name", ""), scopes, now())
    except AppError as error:
        return _account_page(error, part="token")
    return _account_page(secret=secret)


@blueprint.post("/account/tokens/<token_id>/revoke")
def revoke_token(token_id: str) -> BaseResponse:
    """End a token at once."""
    services().owners.tokens.revoke(token_id, now())
    return redirect(url_for("auth.account"), 303)


def _signed_in(owner_id: str, url: str) -> BaseResponse:
    sessions = services().owners.sessions
    before = identity.session()
    if before:
        sessions.end(before.owner, before.id)
    secret = sessions.start(owner_id, request.user_agent.string, now())
    return identity.remember(make_response(redirect(url, 303)), secret)


def _next() -> str:
    return local_or(request.values.get("next"), "/")


def _changed(part: str, change: Callable[[], None]) -> BaseResponse:
    try:
        change()
    except AppError as error:
        return _account_page(error, part=part)
    return redirect(url_for("auth.account", done=part), 303)


def _login_page(error: AppError | None) -> BaseResponse:
    return _page("auth/login.html", error, next=_next(), name=request.form.get("name", ""))


def _setup_page(error: AppError | None) -> BaseResponse:
    form = request.form
    return _page(
        "auth/setup.html",
        error,
        name=form.get("name", ""),
        invitation=form.get("invitation", ""),
        min_length=MIN_PASSWORD_LENGTH,
    )


def _account_page(
    error: AppError | None = None, *, part: str = "", secret: str = ""
) -> BaseResponse:
    session = owner_session()
    owners = services().owners
    return _page(
        "auth/account.html",
        error,
        part=part,
        secret=secret,
        done=request.args.get("done", ""),
        this_session=session.id,
        sessions=owners.sessions.of(session.owner, now()),
        tokens=[token for token in owners.tokens.all() if token.revoked is None],
        token_name=request.form.get("name", "") if part == "token" else "",
        min_length=MIN_PASSWORD_LENGTH,
    )


def _page(template: str, error: AppError | None, **values: object) -> BaseResponse:
    """A form's page; with an error its status says so, and the sentence stands in the form."""
    fault = errors.sentence(error) if error else ""
    response = make_response(
        render_template(template, fault=fault, fault_code=error.code if error else "", **values),
        error.kind.status if error else 200,
    )
    if isinstance(error, TooManyTriesError):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
