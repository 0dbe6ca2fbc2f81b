"""`forge audit`: the audit log of requests and reviews."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.options import (
    BigInteger,
    Moment,
    NonEmptyText,
    json_option,
    limit_option,
    project_options,
    utc_option,
)

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.store.audit import AuditEvents

# Characters of the notes that the table shows.
NOTES_WIDTH = 80


@click.command()
@click.option(
    "--event", type=NonEmptyText(), help="Only events of this name, such as job_dlq_discarded."
)
@click.option("--actor", type=NonEmptyText(), help="Only events of this actor.")
@click.option("--job", "job_id", type=click.UUID, help="Only events of this job.")
@click.option("--dlq", "dlq_id", type=BigInteger(), help="Only events of this dead letter.")
@click.option("--schedule", "schedule_id", type=click.UUID, help="Only events of this schedule.")
@click.option("--tenant", "tenant_id", type=BigInteger(), help="Only events of this tenant.")
@click.option("--since", type=Moment(), help="Only events at or after this time.")
@click.option("--until", type=Moment(), help="Only events before this time.")
@limit_option()
@click.option("--cursor", "before", type=BigInteger(), help="Continue after this event.")
@json_option
@utc_option
@project_options
def audit(
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    limit: int,
    before: int | None,
    **filters: Any,
) -> None:
    """List audit events, newest first."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    page = run(app, lambda app: _read(app, filters, before, limit))
    if as_json:
        print_json(page._asdict())
    else:
        _print(page)


async def _read(
    app: "Forge", filters: dict[str, Any], before: int | None, limit: int
) -> "AuditEvents":
    from forge.core.sensitive.shown import shown_event
    from forge.store.audit import AuditFilter, listed

    database = await (await app.session()).database()
    page = await database.run(listed(AuditFilter(**filters), before, limit))
    return page._replace(items=[shown_event(event) for event in page.items])


def _print(page: "AuditEvents") -> None:
    from forge.cli.output import print_table, say_more, shorten

    if not page.items:
        say_more("no events found", page.next_cursor, page.stopped_early)
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
            for row in page.items
        ],
    )
    say_more(None, page.next_cursor, page.stopped_early)
