"""`pisar owner` and `pisar token`: who may do what."""

import json
import sys
from collections.abc import Sequence

import click

from app import liveness
from app.assembly import opened
from app.cli.address import invitation_url
from app.cli.jobs import JSON_OPTION
from app.clock import to_rfc3339, to_text, utcnow
from app.errors import AppError
from app.owners import ApiToken, Scope
from app.settings import load


@click.group()
def owner() -> None:
    """The owner's account."""


@owner.command()
def invite() -> None:
    """Print the link to become the owner.

    Each is good for panel.invite_lifetime, and for one account; a new one ends the older ones.
    """
    settings = load()
    with opened(settings, liveness.COMMAND) as house:
        click.echo(invitation_url(settings, house.owners, utcnow()))


@owner.command("reset-password")
def reset_password() -> None:
    """Set a new password for the owner.

    Every browser is signed out. The password is asked for on a terminal, or read as one line
    from standard input.
    """
    with opened(load(), liveness.COMMAND) as house:
        if not house.owners.exists():
            raise click.ClickException("There is no owner yet: `pisar owner invite` makes one.")
        name = house.owners.only().name
        house.owners.reset_password(_new_password(name), utcnow())
    click.echo(f"{name} has a new password, and every browser is signed out.")


@owner.command("sign-out-all")
def sign_out_all() -> None:
    """Sign every browser out."""
    with opened(load(), liveness.COMMAND) as house:
        count = house.owners.sessions.end_all()
    click.echo(f"Sessions ended: {count}")


@click.group()
def token() -> None:
    """Tokens for programs that use the HTTP API."""


class _Scopes(click.ParamType[frozenset[Scope]]):
    name = "scopes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> frozenset[Scope]:
        words = [word.strip() for word in str(value).split(",") if word.strip()]
        unknown = set(words) - {*Scope}
        if unknown or not words:
            self.fail(f"choose from {', '.join(Scope)}, with commas between", param, ctx)
        return frozenset(Scope(word) for word in words)


@token.command()
@click.argument("name")
@click.option(
    "--scope",
    type=_Scopes(),
    required=True,
    help="What it is good for: intake (hand in), read (list), manage (the verbs).",
)
def create(name: str, scope: frozenset[Scope]) -> None:
    """Make a token and print it, once: only its hash is kept."""
    with opened(load(), liveness.COMMAND) as house:
        _, secret = house.owners.tokens.create(name, scope, utcnow())
    click.echo(secret)
    click.echo("Keep it: it cannot be shown again. Send it as `Authorization: Bearer …`.", err=True)


@token.command("list")
@JSON_OPTION
def list_tokens(as_json: bool) -> None:
    """List the tokens, the newest first.

    The secrets are not kept, so they cannot be shown.
    """
    with opened(load(), liveness.COMMAND) as house:
        tokens = house.owners.tokens.all()
    if as_json:
        click.echo(json.dumps(_facts(tokens), ensure_ascii=False, indent=2))
        return
    for one in tokens:
        scopes = ",".join(sorted(one.scopes))
        used = f"used {to_text(one.last_used)[:19]}" if one.last_used else "never used"
        state = "revoked" if one.revoked else used
        click.echo(f"{one.prefix}…  {scopes:<20}  {to_text(one.created)[:19]}  {one.name}  {state}")
    if not tokens:
        click.echo("No tokens.", err=True)


@token.command()
@click.argument("name")
def revoke(name: str) -> None:
    """End a token at once; it stays in the list."""
    with opened(load(), liveness.COMMAND) as house:
        try:
            house.owners.tokens.revoke(name, utcnow())
        except AppError as error:
            if error.code != "not_found":
                raise
            raise click.ClickException(f"No working token is called {name}.") from None
    click.echo(f"Revoked: {name}")


def _new_password(name: str) -> str:
    if sys.stdin.isatty():
        words = f"New password for {name}"
        password: str = click.prompt(words, hide_input=True, confirmation_prompt=True, err=True)
        return password
    return sys.stdin.readline().rstrip("\r\n")


def _facts(tokens: Sequence[ApiToken]) -> list[dict[str, object]]:
    return [
        {
            "name": one.name,
            "prefix": one.prefix,
            "scopes": sorted(one.scopes),
            "created": to_rfc3339(one.created),
            "last_used": to_rfc3339(one.last_used) if one.last_used else None,
            "revoked": to_rfc3339(one.revoked) if one.revoked else None,
        }
        for one in tokens
    ]
