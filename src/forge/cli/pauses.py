"""`forge pause`, `forge resume` and `forge pauses`."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from forge.cli.options import (
    Moment,
    NonEmptyText,
    actor,
    json_option,
    project_options,
    utc_option,
)

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.pause import Pause

Command = TypeVar("Command", bound=Callable[..., Any])


def target_options(command: Command) -> Command:
    """Add --type and --queue."""
    command = click.option("--queue", type=NonEmptyText(), help="A queue.")(command)
    return click.option(
        "--type", "type_", type=NonEmptyText(), help="A job type, or a type of schedules."
    )(command)


@click.command()
@target_options
@click.option("--for", "for_", metavar="DURATION", help="End it after this time, such as 2h.")
@click.option("--until", type=Moment(), help="End it at this time.")
@click.option("--reason", required=True, help="Why, for those who find the jobs waiting.")
@json_option
@utc_option
@project_options
def pause(app_option: str | None, config_path: Path | None, as_json: bool, **given: Any) -> None:
    """Start no more jobs of a type, of a queue, or of a type in a queue; what runs goes on."""
    from forge.cli.output import print_json, say
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    added, warning = run(app, lambda app: _pause(app, **given))
    if as_json:
        print_json(asdict(added) | {"warning": warning})
    else:
        say(f"{added.target} is paused {_end(added)}")
        if warning is not None:
            say(f"warning: {warning}", err=True)


@click.command()
@click.argument("pause_id", type=click.UUID, required=False)
@target_options
@click.option("--reason", help="Why, for the audit log.")
@json_option
@project_options
def resume(app_option: str | None, config_path: Path | None, as_json: bool, **given: Any) -> None:
    """End a pause, by its id or by its type and queue."""
    from forge.cli.output import print_either
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    ended = run(app, lambda app: _resume(app, **given))
    print_either(as_json, asdict(ended), f"{ended.target} is resumed")


@click.command()
@json_option
@utc_option
@project_options
def pauses(app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """List what is paused, until when, by whom and why."""
    from forge.cli.output import print_json, print_table
    from forge.cli.project import find_database, run

    found = run(find_database(app_option, config_path), lambda app: app.pauses())
    if as_json:
        print_json({"items": [asdict(pause) for pause in found]})
    elif not found:
        click.echo("nothing is paused")
    else:
        columns = ["pause", "type", "queue", "until", "since", "by", "reason"]
        print_table(columns, map(_cells, found))


async def _pause(
    app: "Forge",
    *,
    type_: str | None,
    queue: str | None,
    for_: str | None,
    until: datetime | None,
    reason: str,
) -> "tuple[Pause, str | None]":
    added = await app.pause(
        type_, queue=queue, for_=for_, until=until, reason=reason, actor=actor()
    )
    return added, await app.pause_warning(added)


async def _resume(
    app: "Forge",
    *,
    pause_id: UUID | None,
    type_: str | None,
    queue: str | None,
    reason: str | None,
) -> "Pause":
    return await app.resume(type_, queue=queue, pause_id=pause_id, reason=reason, actor=actor())


def _end(pause: "Pause") -> str:
    from forge.cli.output import text

    if pause.until is not None:
        return f"until {text(pause.until)}"
    return f"until `forge resume {pause.pause_id}`"


def _cells(pause: "Pause") -> tuple[Any, ...]:
    return (
        pause.pause_id,
        pause.type or "every type",
        pause.queue or "every queue",
        pause.until or "resumed",
        pause.created_at,
        pause.actor,
        pause.reason,
    )
