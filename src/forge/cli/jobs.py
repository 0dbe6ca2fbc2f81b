"""`forge jobs`: looking at jobs, and asking workers to move them."""

import click

from forge.cli.jobs_list import list_jobs
from forge.cli.jobs_request import cancel, delete, run_now
from forge.cli.jobs_show import show


@click.group()
def jobs() -> None:
    """List, show, cancel and delete jobs, and run them now."""


for command in (list_jobs, show, cancel, delete, run_now):
    jobs.add_command(command)
