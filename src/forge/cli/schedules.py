"""`forge schedules`: looking at schedules, and moving them."""

import click

from forge.cli.schedules_list import list_schedules
from forge.cli.schedules_move import disable, enable, run_now
from forge.cli.schedules_show import show


@click.group()
def schedules() -> None:
    """List, show, enable, disable and run schedules."""


for command in (list_schedules, show, enable, disable, run_now):
    schedules.add_command(command)
