"""`forge jobs show`."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from forge.cli.options import json_option, project_options, utc_option

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.job import JobRecord


@click.command()
@click.argument("job_id", type=click.UUID)
@json_option
@utc_option
@project_options
def show(job_id: UUID, app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """Show a job and its failed attempts."""
    from forge.cli.output import print_json
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    record, attempts = run(app, lambda app: _read(app, job_id))
    if as_json:
        print_json(_columns(record) | {"failed_attempts": attempts})
    else:
        _print(record, attempts)


async def _read(app: "Forge", job_id: UUID) -> "tuple[JobRecord, list[dict[str, Any]]]":
    from forge.core.sensitive.shown import shown_attempt, shown_job
    from forge.store.jobs import attempts

    database = await (await app.session()).database()
    record, found = await app.get(job_id), await database.run(attempts(job_id))
    allowed = await app.catalog.sensitive_allowed(record.job_type)
    shown = [shown_attempt(row, record.input, allowed) for row in found]
    return shown_job(record, allowed), shown


def _columns(record: "JobRecord") -> dict[str, Any]:
    columns = {field.name: getattr(record, field.name) for field in fields(record)}
    return columns | {"state": record.state}


def _print(record: "JobRecord", attempts: list[dict[str, Any]]) -> None:
    from forge.cli.output import print_attempt, print_columns

    print_columns({k: v for k, v in _columns(record).items() if v not in (None, ())})
    for attempt in attempts:
        print_attempt(attempt)
