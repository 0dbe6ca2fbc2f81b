"""What commands on many dead letters share: the filter, the dry run, and following the request."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from forge.cli.options import BigInteger, NonEmptyText
from forge.cli.output import print_either, say
from forge.core.errors import InvalidValue
from forge.core.payload_rules import CATEGORIES
from forge.core.retry import ErrorClass

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.jobs.handle import JobHandle

Command = TypeVar("Command", bound=Callable[..., Any])
CLASSES = list(ErrorClass.__args__)  # type: ignore[attr-defined]


def filter_options(command: Command) -> Command:
    """Add --type, --category, --error-class, --fingerprint and --tenant."""
    for option in (
        click.option(
            "--tenant", "tenant_id", type=BigInteger(), help="Only dead letters of this tenant."
        ),
        click.option("--fingerprint", type=NonEmptyText(), help="Only dead letters of this group."),
        click.option("--error-class", type=click.Choice(CLASSES), help="Only this error class."),
        click.option("--category", type=click.Choice(list(CATEGORIES)), help="Only this category."),
        click.option("--type", "job_type", type=NonEmptyText(), help="Only this job type."),
    ):
        command = option(command)
    return command


def check_selection(dlq_id: int | None, filters: Mapping[str, Any], everything: bool) -> None:
    """Refuse a command that names no dead letters, or names them in two ways."""
    has_filter = any(value is not None for value in filters.values())
    if (dlq_id is not None) + (has_filter or everything) != 1:
        raise InvalidValue("pass the id of one dead letter, a filter such as --type, or --all")


async def print_plan(app: "Forge", filters: dict[str, Any], verb: str, as_json: bool) -> int:
    """Print what a request would do, and change nothing."""
    from forge.cli.dlq.list import print_groups, shown

    plan = await app.dead_letters.plan(**filters)
    groups = await shown(app, plan.groups)
    report = {"letters": plan.letters, "groups": list(groups)}
    print_either(as_json, report, f"{plan.letters} would be {verb}")
    if not as_json:
        print_groups(groups)
    return 0


async def followed(
    app: "Forge", handle: "JobHandle", as_json: bool, *, no_wait: bool
) -> dict[str, Any] | None:
    """Print the progress of a request until its end; return its result, None without waiting."""
    from forge.cli.workers import require_live_worker

    if no_wait:
        print_either(as_json, {"request_id": handle.id}, f"requested: {handle.id}")
        return None
    await require_live_worker(app, handle)
    printed = None
    async for record in handle.updates():
        if not as_json and record.progress_message not in (None, printed):
            printed = record.progress_message
            say(printed)
    report: dict[str, Any] = await handle.result()
    return report
