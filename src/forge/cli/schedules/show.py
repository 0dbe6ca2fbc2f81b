"""`forge schedules show`."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forge.cli.options import json_option, project_options, utc_option
from forge.cli.schedules.move import schedule_arguments

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.cli.schedules.view import ScheduleView


@click.command()
@schedule_arguments
@json_option
@utc_option
@project_options
def show(
    named: str,
    key: str,
    tenant: int | None,
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
) -> None:
    """Show a schedule with its next five runs and its recent ones."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    view = run(app, lambda app: _read(app, named, key, tenant))
    if as_json:
        print_json(view.as_json())
    else:
        _print(view)


async def _read(app: "Forge", named: str, key: str, tenant: int | None) -> "ScheduleView":
    from forge.cli.schedules.view import find, views

    (view,) = await views(app, [await find(app, named, key, tenant)])
    return view


def _print(view: "ScheduleView") -> None:
    from forge.cli.output import print_columns, text

    columns = view.as_json()
    apart = {"next_runs", "recent_runs", "has_worker"}
    shown = {k: v for k, v in columns.items() if v not in (None, "") and k not in apart}
    print_columns({"state": view.state, **shown})
    click.secho("\nnext runs", bold=True)
    for moment in view.next_runs:
        click.echo(text(moment))
    if not view.next_runs:
        click.echo(_why_none(view))
    if view.record.recent_runs:
        click.secho("\nlast runs", bold=True)
    for run in view.record.recent_runs:
        why = f": {text(run['error'])}" if "error" in run else ""
        began = text(datetime.fromisoformat(run["started_at"])) if "started_at" in run else "–"
        click.echo(f"{began}  {run['outcome']}{why}")


def _why_none(view: "ScheduleView") -> str:
    if not view.record.enabled:
        return "none: it is disabled"
    return "set when the current run ends" if view.state == "running" else "none scheduled"
