"""`forge schedules edit` and `preview`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from forge.cli.options import Moment, actor, json_option, project_options, read_json, utc_option
from forge.cli.schedules.move import schedule_arguments

if TYPE_CHECKING:
    from datetime import datetime

    from forge.app import Forge
    from forge.cli.schedules.view import ScheduleView
    from forge.core.schedules.edit import SchedulePreview

Command = TypeVar("Command", bound=Callable[..., Any])
# Fields that "none" removes.
REMOVABLE = ("every", "cron", "jitter", "worker_capability", "timeout")


def change_options(command: Command) -> Command:
    """Add an option per field that can be edited."""
    options = [
        click.option("--every", metavar="DURATION", help="The interval; it replaces the cron."),
        click.option("--cron", metavar="EXPRESSION", help="It replaces the interval."),
        click.option("--tz", help="The time zone of the cron expression."),
        click.option("--missed", help="How missed runs are handled: once, skip or all."),
        click.option("--jitter", metavar="DURATION", help='The maximum delay, or "none".'),
        click.option("--priority", help="By name or value."),
        click.option("--capability", "worker_capability", help='Needed by a worker, or "none".'),
        click.option("--timeout", metavar="DURATION", help='Of each run, or "none".'),
        click.option("--next-run-at", type=Moment(), help="When it runs next."),
        click.option("--payload", metavar="JSON", help="A new payload."),
        click.option("--patch", metavar="JSON", help="A merge patch (RFC 7396) of the payload."),
        click.option("--reset", is_flag=True, help="Apply the cron definition in the code again."),
    ]
    for option in reversed(options):
        command = option(command)
    return schedule_arguments(json_option(utc_option(project_options(command))))


@click.command()
@click.option("--reason", help="Why, for the audit log.")
@change_options
def edit(
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    reason: str | None,
    reset: bool,
    **given: Any,
) -> None:
    """Change the rule, the payload or other fields of a schedule."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    changes = _changes(given)
    if not changes and not reset:
        raise click.UsageError("nothing to change; give an option such as --cron or --payload")
    about = {name: given[name] for name in ("named", "key", "tenant")}
    options = changes | {"reason": reason, "reset": reset}
    app = find_database(app_option, config_path)
    view = run(app, lambda app: _edit(app, options, **about))
    if as_json:
        print_json(view.as_json())
    else:
        click.echo(f"{view.record.name} runs {view.words}")
        _print_runs(view.next_runs, "none: it is disabled" if not view.record.enabled else "none")


@click.command()
@click.option(
    "--count",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="How many runs to show.",
)
@change_options
def preview(
    app_option: str | None, config_path: Path | None, as_json: bool, count: int, **given: Any
) -> None:
    """Check an edit without making it, and show when the schedule would run."""
    from dataclasses import asdict

    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    options = _changes(given) | {"reset": given["reset"], "count": count}
    about = {name: given[name] for name in ("named", "key", "tenant")}
    app = find_database(app_option, config_path)
    found = run(app, lambda app: _preview(app, options, **about))
    if as_json:
        print_json(asdict(found))
    else:
        changed = ", ".join(found.changed) or "nothing"
        click.echo(f"would change {changed}; it runs {found.in_words}")
        _print_runs(found.next_runs, "none")


def _print_runs(moments: "list[datetime]", nothing: str) -> None:
    from forge.cli.output import text

    click.secho("\nnext runs", bold=True)
    for moment in moments:
        click.echo(text(moment))
    if not moments:
        click.echo(nothing)


def _changes(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were given, as `app.schedules.edit` takes them."""
    names = {"named", "key", "tenant", "reset"}
    changes = {n: v for n, v in given.items() if v is not None and n not in names}
    for name in REMOVABLE:
        if changes.get(name) == "none":
            changes[name] = None
    for name in ("payload", "patch"):
        if name in changes:
            changes[name] = read_json(changes[name], f"--{name}")
    if str(changes.get("priority", "")).isdecimal():
        changes["priority"] = int(changes["priority"])
    return changes


async def _edit(
    app: "Forge", options: dict[str, Any], named: str, key: str, tenant: int | None
) -> "ScheduleView":
    from forge.cli.schedules.view import find, views

    row = await find(app, named, key, tenant)
    edited = await app.schedules.edit(
        row.type, row.key, tenant_id=row.tenant_id, actor=actor(), **options
    )
    (view,) = await views(app, [edited])
    return view


async def _preview(
    app: "Forge", options: dict[str, Any], named: str, key: str, tenant: int | None
) -> "SchedulePreview":
    from forge.cli.schedules.view import find

    row = await find(app, named, key, tenant)
    return await app.schedules.preview(row.type, row.key, tenant_id=row.tenant_id, **options)
