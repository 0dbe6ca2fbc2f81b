"""`forge dispatch`: asks for one call of a job, and shows how it goes if that is wanted."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.json_input import read_json
from forge.cli.options import Moment, Whole, json_option, project_options

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.handle import JobHandle


@click.command()
@click.argument("job_type", metavar="TYPE")
@click.argument("input_text", metavar="[JSON | @FILE | -]", default="{}")
@click.option("--watch", is_flag=True, help="Show its progress until it is done.")
@click.option("--priority", help="critical, high, normal, low or background.")
@click.option("--delay", metavar="DURATION", help='How long to wait, such as "5m".')
@click.option("--scheduled-at", type=Moment(), help="When to run it.")
@click.option("--expires-at", type=Moment(), help="When it is no longer wanted.")
@click.option("--idempotency-key", metavar="KEY", help="Dispatch once per key.")
@click.option("--tenant-id", type=Whole(), help="Whose it is.")
@click.option("--correlation-id", type=click.UUID, help="What ties it to other things.")
@click.option("--payload-version", metavar="VERSION", help="Of the input's shape.")
@click.option("--queue", help="Where it waits, if not in the queue of its type.")
@click.option("--tag", "tags", multiple=True, help="May be repeated.")
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
    """Dispatch a job of TYPE with its input as JSON, and print its id.

    With --watch the exit code is 0 when it completed and 1 when it did not.
    """
    from forge.cli.project import find_app_or_database, run

    value = _read(input_text)
    app = find_app_or_database(app_option, config_path)
    return run(app, lambda app: _dispatch(app, job_type, value, _given(options), watch, as_json))


async def _dispatch(
    app: "Forge", job_type: str, value: Any, options: dict[str, Any], watch: bool, as_json: bool
) -> int:
    from forge.cli.follow import follow

    handle = await app.dispatch(job_type, value, **options)
    _tell(handle, as_json)
    return await follow(app, handle, as_json) if watch else 0


def _tell(handle: "JobHandle", as_json: bool) -> None:
    from forge.cli.show import print_json

    if as_json:
        made = {"job_id": handle.id, "deduplicated": handle.deduplicated}
        print_json(made, indent=None)
        return
    click.echo(handle.id)
    if handle.deduplicated:
        click.echo("deduplicated: this job was dispatched earlier with the same key", err=True)


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
        raise click.UsageError(f"{origin} cannot be read: {error}; check it") from None
    return read_json(text, origin)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out what was not said, so that the type's own defaults hold."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    priority: str | None = given.get("priority")
    if priority is not None and priority.isdecimal():
        given["priority"] = int(priority)
    return given
