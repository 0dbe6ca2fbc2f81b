"""The options that filter jobs, for every command that lists or changes many."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from forge.cli.options import BigInteger, Moment, NonEmptyText
from forge.core.job import Priority
from forge.core.lifecycle import State, Status
from forge.core.payload_rules import CATEGORIES
from forge.core.retry import ErrorClass

if TYPE_CHECKING:
    from forge.core.job_filter import InputValue, JobCriteria, JobFilter

Command = TypeVar("Command", bound=Callable[..., Any])
# The names of the options as parameters, which are those of JobCriteria.
CRITERIA = {
    "status": {
        "multiple": True,
        "type": click.Choice([str(status) for status in Status]),
        "help": "Only jobs with this status; may be repeated.",
    },
    "state": {
        "type": click.Choice([str(state) for state in State]),
        "help": "Only jobs in this state.",
    },
    "type": {"type": NonEmptyText(), "help": "Only jobs of this type."},
    "queue": {"type": NonEmptyText(), "help": "Only jobs in this queue."},
    "priority": {
        "type": click.Choice([priority.name.lower() for priority in Priority]),
        "help": "Only jobs with this priority.",
    },
    "since": {"type": Moment(), "help": "Only jobs created at or after this time."},
    "until": {"type": Moment(), "help": "Only jobs created before this time."},
    "category": {"type": click.Choice(list(CATEGORIES)), "help": "Only jobs of this category."},
    "correlation_id": {"type": click.UUID, "help": "Only jobs with this correlation id."},
    "parent_id": {
        "flag": "--parent",
        "type": click.UUID,
        "help": "Only jobs that this job dispatched.",
    },
    "retry_of": {"type": click.UUID, "help": "Only jobs that do this job again."},
    "tenant_id": {"flag": "--tenant", "type": BigInteger(), "help": "Only jobs of this tenant."},
    "worker_id": {
        "flag": "--worker",
        "type": click.UUID,
        "help": "Only jobs that this worker claimed last.",
    },
    "tag": {"type": NonEmptyText(), "help": "Only jobs with this tag."},
    "error_class": {
        "type": click.Choice(get_args(ErrorClass)),
        "help": "Only jobs whose last error has this class.",
    },
    "idempotency_key": {"type": NonEmptyText(), "help": "Only jobs with this key."},
}


def job_filter_options(command: Command) -> Command:
    """Add an option for each condition of a filter."""
    for name, attributes in reversed(CRITERIA.items()):
        settings: dict[str, Any] = {"default": None, **attributes}
        flag = settings.pop("flag", f"--{name.replace('_', '-')}")
        command = click.option(flag, name, **settings)(command)
    return command


def content_options(command: Command) -> Command:
    """Add --q and --input."""
    command = click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="PATH=VALUE",
        callback=lambda ctx, parameter, values: [_input_value(value) for value in values],
        help="Only jobs with this value in the input, such as order_id=42; may be repeated.",
    )(command)
    return click.option(
        "--q",
        type=NonEmptyText(),
        help="Only jobs with this text in the input, the last error or the progress message, as "
        "shown.",
    )(command)


def _input_value(given: str) -> "InputValue":
    from forge.core.job_filter import InputValue

    path, separator, value = given.partition("=")
    if not path or not separator:
        raise click.BadParameter(f"{given!r} is not PATH=VALUE; write it as order_id=42")
    return InputValue(path, value)


def take_filter(options: dict[str, Any]) -> "JobFilter":
    """Remove the options of a filter from those of a command, and return the filter."""
    from forge.core.job_filter import JobFilter

    return JobFilter.of(take_criteria(options))


def take_criteria(options: dict[str, Any]) -> "JobCriteria":
    """Remove the options of a filter from those of a command, and return those that are given."""
    given: Any = {name: options.pop(name) or None for name in CRITERIA if name != "tenant_id"}
    # Tenant 0 is a tenant.
    given["tenant_id"] = options.pop("tenant_id")
    return {name: value for name, value in given.items() if value is not None}  # type: ignore[return-value]
