"""Options and parameter types that several commands share."""

import getpass
import json
import os
import socket
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

# Key in the click context for --utc.
UTC = "forge.utc"
Command = TypeVar("Command", bound=Callable[..., Any])


def traceback_option(command: Command) -> Command:
    """Add --traceback; child processes inherit it through the environment."""

    def remember(ctx: click.Context, parameter: click.Parameter, is_set: bool) -> None:
        if is_set:
            os.environ["FORGE_TRACEBACK"] = "1"

    return click.option(
        "--traceback",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=remember,
        help="Show the full traceback of an error (or set FORGE_TRACEBACK).",
    )(command)


def project_options(command: Command) -> Command:
    """Add --app and --config."""
    command = click.option(
        "--config",
        "config_path",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="PATH",
        help="Settings file; default: forge.toml in the current folder.",
    )(command)
    command = click.option(
        "--app", "app_option", metavar="MODULE:APP", help="The app; default: `app` in forge.toml."
    )(command)
    return traceback_option(command)


def _remember_utc(ctx: click.Context, parameter: click.Parameter, is_set: bool) -> None:
    ctx.meta[UTC] = is_set


utc_option = click.option(
    "--utc",
    is_flag=True,
    expose_value=False,
    callback=_remember_utc,
    help="Show times in UTC instead of the local time zone.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


def limit_option(maximum: int = 10_000) -> Callable[[Command], Command]:
    """Add --limit."""
    return click.option(
        "--limit",
        type=click.IntRange(1, maximum),
        default=50,
        show_default=True,
        help="Maximum number to list.",
    )


class NonEmptyText(click.ParamType[str]):
    """Text with at least one visible character: an empty filter would match everything."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail("the value is empty; leave the option out to match everything", param, ctx)
        return str(value)


class BigInteger(click.ParamType[int]):
    """An integer that fits PostgreSQL's bigint."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = click.INT.convert(value, param, ctx)
        if not -(2**63) <= number < 2**63:
            self.fail(f"{number} is out of range; use a 64-bit integer", param, ctx)
        return number


class Moment(click.ParamType[datetime]):
    """A time in ISO 8601 with a time zone."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        try:
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time; write it as 2030-01-31T12:00:00Z", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value!r} has no time zone; end it with Z or +01:00", param, ctx)
        return moment


def read_json(text: str, origin: str) -> Any:
    """Parse JSON, or raise an error that names its origin."""
    try:
        return json.loads(text)
    # ValueError also covers numbers with thousands of digits; deep nesting exhausts the stack.
    except (ValueError, RecursionError) as error:
        raise click.UsageError(
            f'{origin} is not JSON ({error}); write it as \'{{"name": "value"}}\''
        ) from None


def actor() -> str:
    """Return user@host, for the audit log."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
