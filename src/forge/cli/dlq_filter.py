"""Which dead letters a command means."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from forge.cli.options import Filled, Whole
from forge.core.retry import ErrorClass
from forge.core.rules import CATEGORIES

Command = TypeVar("Command", bound=Callable[..., Any])
CLASSES = list(ErrorClass.__args__)  # type: ignore[attr-defined]


def filter_options(command: Command) -> Command:
    """Take --type, --category, --error-class, --fingerprint and --tenant."""
    for option in (
        click.option("--tenant", "tenant_id", type=Whole(), help="Only those of this tenant."),
        click.option("--fingerprint", type=Filled(), help="Only those of this group."),
        click.option("--error-class", type=click.Choice(CLASSES), help="Only those of this class."),
        click.option("--category", type=click.Choice(list(CATEGORIES)), help="Only this category."),
        click.option("--type", "job_type", type=Filled(), help="Only those of this type."),
    ):
        command = option(command)
    return command
