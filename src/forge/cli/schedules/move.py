"""`forge schedules enable`, `disable` and `run`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from forge.cli.options import BigInteger, json_option, project_options, utc_option

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.cli.schedules.view import ScheduleView
    from forge.core.schedules.record import ScheduleRecord

Command = TypeVar("Command", bound=Callable[..., Any])
EVENTS = {
    "enable": "schedule_enabled",
    "disable": "schedule_disabled",
    "run_now": "schedule_run_requested",
}
# Whether a schedule is enabled afterwards; None if the command always changes something.
ENABLED_AFTER = {"enable": True, "disable": False, "run_now": None}


class Moving(NamedTuple):
    """What is done with a schedule, and why."""

    verb: str
    reason: str | None

    def is_done_for(self, record: "ScheduleRecord") -> bool:
        """Whether the schedule already is in that state."""
        return record.enabled is ENABLED_AFTER[self.verb]


def schedule_arguments(command: Command) -> Command:
    """Add the schedule: its id, or its type and key."""
    command = click.option(
        "--tenant", type=BigInteger(), help="Tenant of the schedule, if it has one."
    )(command)
    command = click.argument("key", default="")(command)
    return click.argument("named", metavar="ID|TYPE")(command)


def _moving(command: Command) -> Command:
    command = click.option("--reason", help="Reason, stored in the audit log.")(command)
    return schedule_arguments(json_option(utc_option(project_options(command))))


@click.command()
@_moving
def enable(**common: Any) -> None:
    """Enable a schedule: it runs at its next time, or at once if that has passed."""
    _move("enable", **common)


@click.command()
@_moving
def disable(**common: Any) -> None:
    """Disable a schedule; a run in progress finishes."""
    _move("disable", **common)


@click.command("run")
@_moving
def run_now(**common: Any) -> None:
    """Run a schedule now."""
    _move("run_now", **common)


def _move(
    verb: str,
    *,
    named: str,
    key: str,
    tenant: int | None,
    reason: str | None,
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
) -> None:
    from forge.cli.output import print_json, text
    from forge.cli.project import find_database, run
    from forge.core.new_job import check_reason

    app = find_database(app_option, config_path)
    moving = Moving(verb, check_reason(reason))
    view = run(app, lambda app: _apply(app, moving, named, key, tenant))
    if as_json:
        print_json(view.as_json())
    else:
        planned = view.record.next_run_at
        when = f"next run {text(planned)}" if planned and view.record.enabled else "no next run"
        click.echo(f"{view.record.name} {view.state}, {when}")


async def _apply(
    app: "Forge", moving: Moving, named: str, key: str, tenant: int | None
) -> "ScheduleView":
    """Apply a verb, unless the schedule already is in that state."""
    from forge.cli.schedules.view import find, views

    found = await find(app, named, key, tenant)
    if not moving.is_done_for(found):
        found = await _moved(app, moving, found)
    (view,) = await views(app, [found])
    return view


async def _moved(app: "Forge", moving: Moving, known: "ScheduleRecord") -> "ScheduleRecord":
    """Apply a verb and write an audit event, in one transaction."""
    from forge.cli.options import actor
    from forge.store import audit, schedules
    from forge.store.borrowed import run_on

    verb, reason = moving
    act = getattr(app.schedules, verb)
    about: dict[str, Any] = {"key": known.key, "tenant_id": known.tenant_id}
    database = await (await app.session()).database()
    async with database.transaction() as conn:
        # Another command may have been quicker, with an audit event of its own.
        await run_on(conn, schedules.lock(known.id))
        current: ScheduleRecord = await app.schedules.get(known.type, conn=conn, **about)
        if moving.is_done_for(current):
            return current
        moved: ScheduleRecord = await act(known.type, conn=conn, **about)
        event = audit.add_of_schedule(EVENTS[verb], actor(), moved.tenant_id, moved.id, reason)
        await run_on(conn, event)
    return moved
