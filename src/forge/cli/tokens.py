"""`forge token create`: creates API tokens; only their hashes are stored."""

import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256

import click

from forge.cli.options import BigInteger, json_option, traceback_option

ROLES = ["viewer", "user", "staff", "manager"]
# Lets people and secret scanners recognise a leaked token.
PREFIX = "forge_"


@click.command()
@click.option("--name", required=True, help="Name of its holder, shown in jobs and the audit log.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(ROLES),
    default=["user"],
    help="Role; may be repeated. Default: user. With viewer the token only reads.",
)
@click.option(
    "--tenant",
    "tenant_id",
    type=BigInteger(),
    help="Tenant whose rows it can access; without one, an operator token for all tenants.",
)
@click.option(
    "--expires",
    help='Expiry: a duration such as "90d", or a date or time such as 2027-01-31. Default: never.',
)
@json_option
@traceback_option
def create(
    name: str, roles: tuple[str, ...], tenant_id: int | None, expires: str | None, as_json: bool
) -> None:
    """Create a token, and print it once with its entry for forge.toml."""
    if not name.strip() or not name.isprintable():
        raise click.BadParameter("--name must be printable text and not empty")
    roles = tuple(role for role in ROLES if role in roles)
    if "manager" in roles and "staff" not in roles:
        raise click.BadParameter("the role manager requires staff; add --role staff")
    token = PREFIX + secrets.token_urlsafe(32)
    entry = {
        "name": name,
        "sha256": hash_of(token),
        "roles": list(roles),
        "tenant_id": tenant_id,
        "expires_at": None if expires is None else _expiry(expires),
    }
    if as_json:
        click.echo(json.dumps({"token": token, **entry}))
        return
    click.echo(f"token: {token}\n")
    click.echo("It is not shown again. Add this to forge.toml:\n")
    click.echo(block_of(entry))


def _expiry(given: str) -> str:
    """Return an expiry as the settings write it."""
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
        raise click.BadParameter(f"--expires {given!r} is in the past; give a later time")
    return ends.strftime("%Y-%m-%dT%H:%M:%SZ")


def hash_of(token: str) -> str:
    """Return the hash of a token, as the settings store it."""
    return sha256(token.encode()).hexdigest()


def block_of(entry: Mapping[str, object]) -> str:
    """Return a token's entry in TOML, whose strings are written as in JSON."""
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in entry.items()
        if value is not None
    ]
    return "\n".join(["[[auth.tokens]]", *lines])
