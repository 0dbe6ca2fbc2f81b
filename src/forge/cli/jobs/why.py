"""`forge jobs why`."""

from dataclasses import asdict
from pathlib import Path
from uuid import UUID

import click

from forge.cli.options import json_option, project_options, utc_option


@click.command()
@click.argument("job_id", type=click.UUID)
@json_option
@utc_option
@project_options
def why(job_id: UUID, app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """Explain why a job is not running."""
    from forge.cli.output import print_columns, print_json, say
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    found = run(app, lambda app: app.why(job_id))
    if as_json:
        print_json(asdict(found))
    else:
        say(found.message)
        print_columns({"status": found.status, "reason": found.reason, **found.facts})
