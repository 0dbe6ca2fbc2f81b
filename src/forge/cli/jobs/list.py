"""`forge jobs list`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from forge.cli.options import NonEmptyText, json_option, limit_option, project_options, utc_option
from forge.core.lifecycle import Status

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.store.statement import Row, Rows

COLUMNS = ["id", "type", "status", "attempts", "queue", "progress", "scheduled", "message"]
# Characters of the message that the table shows.
MESSAGE_WIDTH = 80


@click.command("list")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([str(status) for status in Status]),
    help="Only jobs with this status; may be repeated.",
)
@click.option("--type", "job_type", type=NonEmptyText(), help="Only jobs of this type.")
@click.option("--queue", type=NonEmptyText(), help="Only jobs in this queue.")
@limit_option()
@click.option("--cursor", type=click.UUID, help="Continue after this job.")
@json_option
@utc_option
@project_options
def list_jobs(
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    limit: int,
    **filters: Any,
) -> None:
    """List jobs, newest first."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    found = run(app, lambda app: _read(app, limit=limit + 1, **filters))
    page, has_more = found[:limit], len(found) > limit
    cursor = page[-1]["id"] if has_more else None
    if as_json:
        items = [dict(row) | {"state": Status(row["status"]).state} for row in page]
        print_json({"items": items, "next_cursor": cursor})
    else:
        _print(page, cursor)


async def _read(
    app: "Forge",
    *,
    statuses: tuple[str, ...],
    job_type: str | None,
    queue: str | None,
    cursor: UUID | None,
    limit: int,
) -> "Rows":
    from forge.store.jobs import listed

    database = await (await app.session()).database()
    found = await database.run(listed(list(statuses) or None, job_type, queue, cursor, limit))
    allowed = await app.catalog.sensitive_allowed_by_type(row["job_type"] for row in found)
    return [_shown(row, allowed[row["job_type"]]) for row in found]


def _shown(row: "Row", allowed: tuple[str, ...]) -> dict[str, Any]:
    """Redact a job's messages and leave its input out."""
    from forge.core.payload import decode_if_possible
    from forge.core.sensitive.shown import shown_message

    shown = dict(row)
    given = shown.pop("input")
    input = decode_if_possible(given) if isinstance(given, str) else given
    messages = ("last_error", "progress_message")
    return shown | {name: shown_message(shown[name], input, allowed) for name in messages}


def _print(page: "Rows", cursor: UUID | None) -> None:
    from forge.cli.output import print_table, shorten

    if not page:
        click.echo("no jobs found")
        return
    print_table(
        COLUMNS,
        [
            (
                row["id"],
                row["job_type"],
                row["status"],
                f"{row['attempts']}/{row['max_attempts']}",
                row["queue"],
                _progress(row),
                row["scheduled_at"],
                shorten(_message(row), MESSAGE_WIDTH),
            )
            for row in page
        ],
    )
    if cursor is not None:
        click.echo(f"more: --cursor {cursor}")


def _progress(row: "Row") -> str | None:
    """Return the progress of a running or completed job."""
    is_moving = row["status"] in (Status.RUNNING, Status.COMPLETED)
    return f"{row['progress_percent'] or 0}%" if is_moving else None


def _message(row: "Row") -> str | None:
    """Return the progress message of a running job, else the error of its last attempt."""
    error: str | None = row["last_error"]
    progress: str | None = row["progress_message"]
    if row["status"] in (Status.RUNNING, Status.COMPLETED):
        return progress or (error if row["status"] == Status.RUNNING else None)
    return error or progress
