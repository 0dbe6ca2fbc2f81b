"""`forge dlq`: looking at dead letters, and deciding what becomes of them."""

import click

from forge.cli.dlq_list import groups, list_letters
from forge.cli.dlq_reprocess import reprocess
from forge.cli.dlq_show import discard, show


@click.group()
def dlq() -> None:
    """List, show, group, reprocess and discard dead letters."""


for command in (list_letters, show, groups, reprocess, discard):
    dlq.add_command(command)
