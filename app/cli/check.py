"""`pisar check`: a line for each thing the service needs."""

import click

from app.checkup import Verdict, examine
from app.process import EXIT_FAILED
from app.settings import load


@click.command()
def check() -> int:
    """Look at everything the service needs, and say how to mend it.

    Settings, disk, database, converter, recognizer, processes and ports: a line for each, and
    under what is broken how to mend it. The exit code is 1 when something is
    broken; a note breaks nothing.
    """
    code = 0
    for finding in examine(load()):
        click.echo(f"{finding.verdict:<7} {finding.subject:<20} {finding.words}")
        if finding.mend:
            click.echo(f"{'':<28} mend: {finding.mend}")
        if finding.verdict is Verdict.BROKEN:
            code = EXIT_FAILED
    return code
