"""The command itself: which module has which command, and how a failure shows (I03)."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from app.errors import AppError
from app.process import EXIT_BAD_SETTINGS, EXIT_FAILED, EXIT_INTERRUPTED
from app.settings import SettingsError

# Loaded when asked for: `pisar jobs` need not wait for the web's imports.
_COMMANDS = {
    "up": "app.cli.service",
    "web": "app.cli.web",
    "worker": "app.cli.service",
    "bot": "app.cli.bot",
    "transcribe": "app.cli.transcribe",
    "jobs": "app.cli.jobs",
    "show": "app.cli.jobs",
    "revive": "app.cli.verbs",
    "cancel": "app.cli.verbs",
    "delete": "app.cli.verbs",
    "undelete": "app.cli.verbs",
    "pause": "app.cli.verbs",
    "resume": "app.cli.verbs",
    "owner": "app.cli.accounts",
    "token": "app.cli.accounts",
    "check": "app.cli.check",
}


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """The commands in the order of the day's work, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = getattr(import_module(module), cmd_name)
        return command


@click.group(cls=_Commands, context_settings=_CONTEXT)
@click.version_option(package_name="pisar", prog_name="pisar", message="%(prog)s %(version)s")
def pisar() -> None:
    """Turn recordings into text on your own machine, and never lose one.

    Settings come from pisar.toml in the current folder, or from the file that PISAR_CONFIG names;
    PISAR_<SECTION>__<KEY> overrides any of them, as in PISAR_STORAGE__DATA_DIR=/var/lib/pisar.
    """


def run(arguments: Sequence[str]) -> int:
    """Run a command line and give its exit code: 0, 1 failed, 2 usage, 78 bad settings."""
    try:
        code = pisar.main(list(arguments), prog_name="pisar", standalone_mode=False)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "pisar"
        _complain(f"{error.format_message()} (`{where} --help` says more)")
        return error.exit_code
    except click.ClickException as error:
        _complain(error.format_message())
        return error.exit_code
    except SettingsError as error:
        click.echo(str(error), err=True)
        return EXIT_BAD_SETTINGS
    except AppError as error:
        _complain(f"{error.message} ({error.detail})" if error.detail else error.message)
        return EXIT_BAD_SETTINGS if error.code == "database_newer" else EXIT_FAILED
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    return code if isinstance(code, int) else 0


def _complain(words: str) -> None:
    click.echo("pisar: " + " ".join(words.split()), err=True)
