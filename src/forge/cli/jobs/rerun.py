"""`forge jobs rerun`."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from forge.cli.options import Moment, actor, json_option, project_options, read_json

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.jobs.handle import JobHandle


@click.command()
@click.argument("job_id", type=click.UUID)
@click.option(
    "--patch",
    metavar="JSON",
    help="A JSON merge patch (RFC 7396) of the input; null removes a field.",
)
@click.option("--reason", help="Reason, stored in the audit log.")
@click.option("--priority", help="By name or value; default: that of the job.")
@click.option("--queue", help="Default: that of the job.")
@click.option("--delay", metavar="DURATION", help='How long to wait, such as "5m".')
@click.option("--scheduled-at", type=Moment(), help="Not before this time.")
@json_option
@project_options
def rerun(
    job_id: UUID,
    patch: str | None,
    reason: str | None,
    priority: str | None,
    queue: str | None,
    delay: str | None,
    scheduled_at: datetime | None,
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
) -> None:
    """Run a final job again, as a new job with the same input or a patched one."""
    from forge.cli.output import print_either
    from forge.cli.project import find_database, run

    read = None if patch is None else read_json(patch, "--patch")
    given = {
        "priority": int(priority) if priority is not None and priority.isdigit() else priority,
        "queue": queue,
        "delay": delay,
        "scheduled_at": scheduled_at,
    }
    options: Any = {"actor": actor()} | {
        name: value for name, value in given.items() if value is not None
    }

    async def send(app: "Forge") -> "JobHandle":
        return await app.rerun(job_id, read, reason=reason, **options)

    made = run(find_database(app_option, config_path), send)
    report = {"job_id": made.id, "retry_of": job_id}
    print_either(as_json, report, f"{job_id} runs again as {made.id}")
