"""`pisar bot`: the bot's process alone."""

import click

from app import log
from app.settings import load
from app.telegram.bot import serve


@click.command()
def bot() -> int:
    """Run the Telegram bot: recordings in, texts out.

    telegram.token is its token. `pisar up` starts it too, as soon as there is one.
    """
    settings = load()
    log.setup(settings.log, "bot")
    return serve(settings)
