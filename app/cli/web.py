"""`pisar web`: the web process alone."""

import click

from app import log
from app.settings import load
from app.web.server import serve


@click.command()
def web() -> int:
    """Run the web process: pages, the HTTP API, the owner's panel.

    Recordings are taken in, but nothing is converted or recognized until a worker runs.
    `pisar up` starts both.
    """
    settings = load()
    log.setup(settings.log, "web")
    return serve(settings)
