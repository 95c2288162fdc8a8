"""`pisar up` and `pisar worker`: the service's processes, together or one of them."""

import os
from collections.abc import Mapping, Sequence

import click

from app import liveness, log, process
from app.assembly import opened
from app.cli.address import invitation_url, is_listening, service_url
from app.clock import utcnow
from app.settings import Settings, child_environment, load
from app.supervisor import Supervisor


@click.command()
def up() -> int:
    """Start the web, the worker and the bot, and watch over them.

    The bot is started when telegram.token is set. Prints the address, and the owner's invitation
    link while there is no owner. What ends is started again after a growing pause. Ctrl-C or
    SIGTERM stops all; a second Ctrl-C hastens.
    """
    settings = load()
    log.setup(settings.log, "up")
    if is_listening(settings):
        raise click.ClickException(
            f"port {settings.server.port} is taken: stop what uses it, or set server.port"
        )
    # Before any process starts: the schema moves here, and the link must be known.
    invitation = _invitation(settings)
    supervisor = Supervisor(settings, commands(settings))
    return supervisor.run(
        is_ready=lambda: is_listening(settings),
        announce=lambda: _announce(settings, invitation),
    )


@click.command()
def worker() -> None:
    """Run one worker process: it converts and recognizes what waits.

    Any number of them may run on one data directory of one machine. `pisar up` starts one.
    """
    settings = load()
    command = process.worker_command()
    os.execve(command[0], list(command), child_environment(settings))  # noqa: S606 - our own words


def commands(settings: Settings) -> Mapping[str, Sequence[str]]:
    """The processes of a service, each by its role."""
    found = {"web": process.web_command(), "worker": process.worker_command()}
    if settings.telegram.token:
        found["bot"] = process.bot_command()
    return found


def _invitation(settings: Settings) -> str | None:
    with opened(settings, liveness.COMMAND) as house:
        if house.owners.exists():
            return None
        return invitation_url(settings, house.owners, utcnow())


def _announce(settings: Settings, invitation: str | None) -> None:
    click.echo(f"Pisar is at {service_url(settings)}")
    if invitation:
        minutes = settings.panel.invite_lifetime // 60
        click.echo(f"Become its owner, within {minutes} minutes: {invitation}")
