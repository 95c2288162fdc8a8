"""Turns every error into the answer its asker understands: a page, a part of one, or JSON (I05)."""

import json
import logging
from http import HTTPStatus
from urllib.parse import urlsplit

from flask import Flask, Response, make_response, redirect, render_template, request, url_for
from flask_babel import gettext
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from app.errors import AppError
from app.owners import TooManyTriesError
from app.web import htmx
from app.web.next_page import is_local

log = logging.getLogger(__name__)

PROBLEM = "application/problem+json"

_CODES = {
    401: "sign_in",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    416: "bad_range",
}
_SIGN_IN = frozenset({"sign_in", "token_required"})


def install(app: Flask) -> None:
    """Catch all that views raise."""
    app.register_error_handler(AppError, answer)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _unexpected)


def wants_json() -> bool:
    """True for programs: every address under /api, and whoever prefers JSON to HTML."""
    if request.path == "/api" or request.path.startswith("/api/"):
        return True
    best = request.accept_mimetypes.best_match(["text/html", "application/json"])
    return best == "application/json"


def answer(error: AppError) -> BaseResponse:
    """The answer to a known error."""
    return _with_headers(error, _body(error, error.kind.status))


def sentence(error: AppError) -> str:
    """What happened and what to do, in the reader's language."""
    return str(gettext(error.message))


def problem(code: str, status: int, detail: str) -> str:
    """The body of an error as RFC 9457 has it."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    return json.dumps(body, ensure_ascii=False) + "\n"


def _body(error: AppError, status: int) -> BaseResponse:
    if wants_json():
        return _problem(error, status)
    if error.code in _SIGN_IN:
        return _to_sign_in()
    template = "_error.html" if htmx.wants_partial() else "error.html"
    return make_response(
        render_template(template, code=error.code, sentence=sentence(error)), status
    )


def _with_headers(error: AppError, response: BaseResponse) -> BaseResponse:
    if isinstance(error, TooManyTriesError):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    if response.status_code == HTTPStatus.UNAUTHORIZED and wants_json():
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _problem(error: AppError, status: int) -> Response:
    return Response(problem(error.code, status, sentence(error)), status, mimetype=PROBLEM)


def _to_sign_in() -> BaseResponse:
    url = url_for("auth.login", next=_page_to_return_to())
    if htmx.is_htmx():
        # A redirect would be followed by the script and put the log-in page into a table row.
        return htmx.send_to(make_response("", 401), url)
    return redirect(url, 303)


def _page_to_return_to() -> str | None:
    """The page that was open: an order itself cannot be given again by a link."""
    if request.method == "GET" and not htmx.is_htmx():
        path = request.full_path.rstrip("?")
    else:
        parts = urlsplit(htmx.page_url() or request.headers.get("Referer", ""))
        if parts.netloc != request.host:
            return None
        path = parts.path + (f"?{parts.query}" if parts.query else "")
    return path if is_local(path) else None


def _http(error: HTTPException) -> BaseResponse:
    status = error.code or 500
    if status < 400:
        return error.get_response(request.environ)
    code = _CODES.get(status, "bad_request" if status < 500 else "internal")
    response = _body(AppError(code), status)
    for name, value in error.get_headers(request.environ):
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return _with_headers(AppError(code), response)


def _unexpected(error: Exception) -> BaseResponse:
    # The rule, not the path: a path may hold a record's id and a stored name.
    rule = request.url_rule.rule if request.url_rule else None
    log.error("a request failed", exc_info=error, extra={"method": request.method, "route": rule})
    return answer(AppError("internal"))
