"""The only place that knows the headers of htmx."""

from flask import Response, request


def is_htmx() -> bool:
    """True when a script of the page asks, not the browser itself."""
    return "HX-Request" in request.headers


def wants_partial() -> bool:
    """True when the answer should be the changed part only.

    htmx asks for the whole page again when it goes back to one it has not kept.
    """
    return is_htmx() and "HX-History-Restore-Request" not in request.headers


def page_url() -> str:
    """The address of the page that a script of it asks from; empty when unknown."""
    return request.headers.get("HX-Current-URL", "")


def announce(response: Response, event: str) -> Response:
    """Fire an event on the page once the answer is in its place; hx-trigger listens to it."""
    response.headers["HX-Trigger-After-Settle"] = event
    return response


def send_to(response: Response, url: str) -> Response:
    """Have the whole page go to another address, whatever the answer's status."""
    response.headers["HX-Redirect"] = url
    return response
