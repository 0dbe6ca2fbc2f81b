"""`forge workers`: who is there, and who is not any more."""

from pathlib import Path

import click

from forge.cli.options import json_option, project_options, utc_option


@click.command()
@json_option
@utc_option
@project_options
def workers(app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """List the workers that are known, and whether they live."""
    from forge.cli.living import known_workers
    from forge.cli.project import find_database, run
    from forge.cli.show import print_json, print_table

    found = run(find_database(app_option, config_path), known_workers)
    if as_json:
        print_json({"items": found})
    elif not found:
        click.echo("there is no worker; start one with `forge worker MODULE:APP`")
    else:
        columns = ["id", "state", "host", "pid", "running", "queues", "capabilities", "types"]
        print_table(
            columns,
            [
                (
                    worker["id"],
                    worker["state"],
                    worker["hostname"],
                    worker["pid"],
                    f"{worker['running']}/{worker['max_concurrent']}",
                    "all" if worker["queues"] is None else worker["queues"],
                    worker["capabilities"],
                    [*worker["job_types"], *worker["schedule_types"]],
                )
                for worker in found
            ],
        )
