"""`forge token`: tokens for people and programs; only their hashes are kept."""

import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256

import click

from forge.cli.options import Whole, json_option, traceback_option

ROLES = ["user", "staff", "manager"]
# Makes a leaked token easy to find, for people and for scanners.
PREFIX = "forge_"


@click.group()
def token() -> None:
    """Make tokens for the server."""


@token.command()
@click.option("--name", required=True, help="Whose it is; jobs and the audit say so.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(ROLES),
    default=["user"],
    help="What it allows; may be repeated. `user` unless given.",
)
@click.option(
    "--tenant",
    "tenant_id",
    type=Whole(),
    help="Whose rows it sees; without one it is an operator's and sees all.",
)
@click.option(
    "--expires",
    help='When it ends: a duration such as "90d", or a date or time such as 2027-01-31. Never '
    "unless given.",
)
@json_option
@traceback_option
def create(
    name: str, roles: tuple[str, ...], tenant_id: int | None, expires: str | None, as_json: bool
) -> None:
    """Make a token, and print it this once with what to write into forge.toml."""
    if not name.strip() or not name.isprintable():
        raise click.BadParameter("must say whose token it is, in printable characters")
    roles = tuple(role for role in ROLES if role in roles)
    if "manager" in roles and "staff" not in roles:
        raise click.BadParameter("manager counts only together with staff; add --role staff")
    made = PREFIX + secrets.token_urlsafe(32)
    entry = {
        "name": name,
        "sha256": hash_of(made),
        "roles": list(roles),
        "tenant_id": tenant_id,
        "expires_at": None if expires is None else _end(expires),
    }
    if as_json:
        click.echo(json.dumps({"token": made, **entry}))
        return
    click.echo(f"token: {made}\n")
    click.echo("It is not shown again. Write into forge.toml:\n")
    click.echo(block_of(entry))


def _end(given: str) -> str:
    """Return when a token ends, as the settings write it."""
    from forge.core.duration import parse_duration
    from forge.core.errors import InvalidValue

    now = datetime.now(UTC)
    try:
        ends = now + parse_duration(given, what="--expires")
    except (InvalidValue, OverflowError):
        try:
            ends = datetime.fromisoformat(given)
        except ValueError:
            raise click.BadParameter(
                f'--expires must be a duration such as "90d" or a time such as 2027-01-31, not '
                f"{given!r}"
            ) from None
    ends = ends.replace(tzinfo=UTC) if ends.tzinfo is None else ends.astimezone(UTC)
    if ends <= now:
        raise click.BadParameter(f"--expires {given!r} is past; give a later time")
    return ends.strftime("%Y-%m-%dT%H:%M:%SZ")


def hash_of(token: str) -> str:
    """Return what the settings keep of a token."""
    return sha256(token.encode()).hexdigest()


def block_of(entry: Mapping[str, object]) -> str:
    """Write a token's entry in TOML, whose strings are written as in JSON."""
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in entry.items()
        if value is not None
    ]
    return "\n".join(["[[auth.tokens]]", *lines])
