"""`forge audit`: the audit log of requests and reviews."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

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

# Characters of the notes that the table shows.
NOTES_WIDTH = 80


@click.command()
@click.option(
    "--event", type=NonEmptyText(), help="Only events of this name, such as job_dlq_discarded."
)
@click.option("--actor", type=NonEmptyText(), help="Only events of this actor.")
@click.option("--job", "job_id", type=click.UUID, help="Only events of this job.")
@click.option("--dlq", "dlq_id", type=BigInteger(), help="Only events of this dead letter.")
@click.option("--tenant", type=BigInteger(), help="Only events of this tenant.")
@limit_option()
@click.option("--cursor", "before", type=BigInteger(), help="Continue after this event.")
@json_option
@utc_option
@project_options
def audit(
    app_option: str | None, config_path: Path | None, as_json: bool, limit: int, **filters: Any
) -> None:
    """List audit events, newest first."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    found = run(app, lambda app: _read(app, limit=limit + 1, **filters))
    page, has_more = found[:limit], len(found) > limit
    cursor = page[-1]["id"] if has_more else None
    if as_json:
        print_json({"items": page, "next_cursor": cursor})
    else:
        _print(page, cursor)


async def _read(app: "Forge", **filters: Any) -> list[dict[str, Any]]:
    from forge.core.sensitive.shown import shown_event
    from forge.store.audit import listed

    database = await (await app.session()).database()
    return [shown_event(event) for event in await database.run(listed(**filters))]


def _print(page: list[dict[str, Any]], cursor: int | None) -> None:
    from forge.cli.output import print_table, shorten

    if not page:
        click.echo("no events found")
        return
    print_table(
        ["id", "time", "event", "actor", "tenant", "job", "dlq id", "schedule", "notes"],
        [
            (
                row["id"],
                row["created_at"],
                row["event"],
                row["actor"],
                row["tenant_id"],
                row["job_id"],
                row["dlq_id"],
                row["schedule_id"],
                shorten(row["notes"], NOTES_WIDTH),
            )
            for row in page
        ],
    )
    if cursor is not None:
        click.echo(f"more: --cursor {cursor}")
