"""`forge dispatch`: dispatches one job, and follows it with --watch."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.options import BigInteger, Moment, json_option, project_options, read_json
from forge.core.job_columns import COLUMNS, OPTIONS

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.jobs.handle import JobHandle


def _column_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add an option for each column, and for the delay, that the table of columns has one for."""
    for name in reversed(list(OPTIONS)):
        if (option := OPTIONS[name]).cli is not None:
            sql_type = COLUMNS[name].type if name in COLUMNS else None
            is_list = sql_type == "text[]"
            command = click.option(
                "--" + (name.removesuffix("s") if is_list else name).replace("_", "-"),
                name,
                type=_TYPES.get(sql_type),
                multiple=is_list,
                metavar=option.metavar,
                help=option.cli,
            )(command)
    return command


_TYPES: Mapping[str | None, click.ParamType[Any]] = {
    "timestamptz": Moment(),
    "bigint": BigInteger(),
    "uuid": click.UUID,
}


@click.command()
@click.argument("job_type", metavar="TYPE")
@click.argument("input_text", metavar="[JSON | @FILE | -]", default="{}")
@click.option("--watch", is_flag=True, help="Follow the job until it is done.")
@_column_options
@json_option
@project_options
def dispatch(
    job_type: str,
    input_text: str,
    watch: bool,
    as_json: bool,
    app_option: str | None,
    config_path: Path | None,
    **options: Any,
) -> int:
    """Dispatch a job of TYPE with a JSON input, and print its id.

    With --watch the exit code is 0 if the job completed and 1 if it did not.
    """
    from forge.cli.project import find_app_or_database, run

    value = _read(input_text)
    app = find_app_or_database(app_option, config_path)
    return run(app, lambda app: _dispatch(app, job_type, value, _given(options), watch, as_json))


async def _dispatch(
    app: "Forge", job_type: str, value: Any, options: dict[str, Any], watch: bool, as_json: bool
) -> int:
    from forge.cli.jobs.follow import follow

    handle = await app.dispatch(job_type, value, **options)
    _print(handle, as_json)
    return await follow(app, handle, as_json) if watch else 0


def _print(handle: "JobHandle", as_json: bool) -> None:
    from forge.cli.output import print_json

    if as_json:
        made = {"job_id": handle.id, "deduplicated": handle.deduplicated}
        print_json(made, indent=None)
        return
    click.echo(handle.id)
    if handle.deduplicated:
        click.echo("deduplicated: a job with this idempotency key already exists", err=True)


def _read(text: str) -> Any:
    """Read the input from the argument itself, from a file or from stdin."""
    origin = "the input"
    try:
        if text == "-":
            origin, text = "stdin", sys.stdin.read()
        elif text.startswith("@"):
            origin = text[1:]
            text = Path(origin).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"cannot read {origin}: {error}") from None
    return read_json(text, origin)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; the type's defaults apply to the rest."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    priority: str | None = given.get("priority")
    if priority is not None and priority.isdecimal():
        given["priority"] = int(priority)
    return given
