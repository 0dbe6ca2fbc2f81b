"""`forge schedules list`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from forge.cli.options import (
    BigInteger,
    NonEmptyText,
    json_option,
    limit_option,
    project_options,
    utc_option,
)

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.cli.schedules.view import ScheduleView

COLUMNS = ["type", "key", "tenant", "state", "next run", "last run", "failures", "when"]


@click.command("list")
@click.option("--type", type=NonEmptyText(), help="Only schedules of this type.")
@click.option("--key", help='Only schedules with this key; "" for those without one.')
@click.option("--enabled/--disabled", default=None, help="Only enabled or disabled schedules.")
@click.option("--tenant", type=BigInteger(), help="Only schedules of this tenant.")
@limit_option(1000)
@click.option("--cursor", type=click.UUID, help="Continue after this schedule.")
@json_option
@utc_option
@project_options
def list_schedules(
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    limit: int,
    **filters: Any,
) -> None:
    """List schedules, newest first."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    found = run(app, lambda app: _read(app, limit=limit + 1, **filters))
    page, has_more = found[:limit], len(found) > limit
    cursor = page[-1].record.id if has_more else None
    if as_json:
        print_json({"items": [view.as_json() for view in page], "next_cursor": cursor})
    else:
        _print(page, cursor)


async def _read(
    app: "Forge",
    *,
    type: str | None,
    key: str | None,
    enabled: bool | None,
    tenant: int | None,
    cursor: UUID | None,
    limit: int,
) -> "list[ScheduleView]":
    from forge.cli.schedules.view import views

    records = await app.schedules.list(
        type, key=key, enabled=enabled, tenant_id=tenant, before=cursor, limit=limit
    )
    return await views(app, records)


def _print(page: "list[ScheduleView]", cursor: UUID | None) -> None:
    from forge.cli.output import print_table

    if not page:
        click.echo("no schedules found")
        return
    print_table(
        COLUMNS,
        [
            (
                view.record.type,
                view.record.key or None,
                view.record.tenant_id,
                view.state,
                view.record.next_run_at,
                view.record.last_run_at,
                view.record.consecutive_failures,
                view.words,
            )
            for view in page
        ],
    )
    if cursor is not None:
        click.echo(f"more: --cursor {cursor}")
