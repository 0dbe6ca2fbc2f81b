"""The options that many commands take."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

# Where a command keeps that --utc was given.
UTC = "forge.utc"
Command = TypeVar("Command", bound=Callable[..., Any])


def traceback_option(command: Command) -> Command:
    """Take --traceback, which also the processes that this one starts are told of."""

    def remember(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
        if wanted:
            os.environ["FORGE_TRACEBACK"] = "1"

    return click.option(
        "--traceback",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=remember,
        help="Show the whole trace of an error (or set FORGE_TRACEBACK).",
    )(command)


def project_options(command: Command) -> Command:
    """Take --app and --config: whose jobs these are, and where the settings lie."""
    command = click.option(
        "--config",
        "config_path",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="PATH",
        help="The settings; forge.toml in this folder unless given.",
    )(command)
    command = click.option(
        "--app", "app_option", metavar="MODULE:APP", help="The app, if forge.toml does not name it."
    )(command)
    return traceback_option(command)


def _remember_utc(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    ctx.meta[UTC] = wanted


utc_option = click.option(
    "--utc",
    is_flag=True,
    expose_value=False,
    callback=_remember_utc,
    help="Show times in UTC instead of the local time zone.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON, for programs.")


def limit_option(most: int = 10_000) -> Callable[[Command], Command]:
    """Take --limit: how many of a list."""
    return click.option(
        "--limit", type=click.IntRange(1, most), default=50, show_default=True, help="How many."
    )


class Filled(click.ParamType[str]):
    """A text with at least one visible character: an empty filter would match everything."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail("it is empty; leave the option out to match everything", param, ctx)
        return str(value)


class Whole(click.ParamType[int]):
    """A whole number that the database has room for."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = click.INT.convert(value, param, ctx)
        if not -(2**63) <= number < 2**63:
            self.fail(f"{number} is too large; it must be a number of 64 bits", param, ctx)
        return number


class Moment(click.ParamType[datetime]):
    """A point in time, in ISO 8601 and with its time zone."""

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
