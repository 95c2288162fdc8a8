"""What every page has around its content: the bar with its red count, icons, the way back here."""

import re

from flask import Flask, request, url_for
from markupsafe import Markup, escape

from app.job import State
from app.web.chats import has_telegram
from app.web.i18n import zone_name
from app.web.job_view import PACE
from app.web.pace import Pace
from app.web.services import services

_COMMAND = re.compile(r"`([^`]+)`")


def install(app: Flask) -> None:
    """Put into every template what base.html shows, and keep the pace of running jobs."""
    app.extensions[PACE] = Pace()
    app.jinja_env.filters["commands"] = commands
    app.context_processor(
        lambda: {
            "icon": icon,
            "dead_count": dead_count,
            "has_telegram": has_telegram,
            "here_path": here_path(),
            "zone_label": Markup("<span data-zone-label>{}</span>").format(zone_name()),
        }
    )


def icon(name: str) -> Markup:
    """A shape of the sprite; the words beside it say what it means."""
    sprite = url_for("static", filename="icons.svg")
    return Markup('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>').format(
        sprite, name
    )


def commands(sentence: str) -> Markup:
    """A sentence with the commands it names in backticks set as such."""
    plain = str(escape(sentence))  # re.sub on a Markup would escape our own tags too
    return Markup(_COMMAND.sub(r"<code>\1</code>", plain))  # noqa: S704 - escaped above


def dead_count() -> int:
    """How many jobs wait for the owner's verdict."""
    return services().queue.counts().get(State.DEAD, 0)


def here_path() -> str:
    """The page that is shown, for forms that come back to it."""
    return request.full_path.rstrip("?") if request.method == "GET" else request.path
