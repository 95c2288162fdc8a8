"""`pisar check`: a line for each thing the service needs."""

from itertools import chain

import click

from app.checkup import Verdict, examine
from app.process import EXIT_FAILED
from app.settings import load
from app.telegram.checkup import examine as examine_telegram


@click.command()
def check() -> int:
    """Look at everything the service needs, and say how to mend it.

    Settings, disk, database, converter, recognizer, processes, ports and Telegram: a line for each,
    and under what is broken how to mend it. The exit code is 1 when something is
    broken; a note breaks nothing.
    """
    code = 0
    settings = load()
    for finding in chain(examine(settings), examine_telegram(settings)):
        click.echo(f"{finding.verdict:<7} {finding.subject:<20} {finding.words}")
        if finding.mend:
            click.echo(f"{'':<28} mend: {finding.mend}")
        if finding.verdict is Verdict.BROKEN:
            code = EXIT_FAILED
    return code
