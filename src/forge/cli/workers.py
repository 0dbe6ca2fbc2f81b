"""`forge workers`: list, show, drain and resume workers; and which are alive."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from forge.cli.options import actor, json_option, project_options, utc_option
from forge.core.errors import ForgeError

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.core.worker_record import CurrentWork, WorkerRecord
    from forge.jobs.handle import JobHandle

Command = TypeVar("Command", bound=Callable[..., Any])
COLUMNS = ["id", "state", "host", "pid", "running", "now", "queues", "capabilities", "types"]
CURRENT_COLUMNS = ["since", "kind", "id", "type", "queue", "status", "attempt", "progress"]
# Types that a line of the list names of what a worker runs.
MAX_NAMED = 3


@click.command("list")
@json_option
@utc_option
@project_options
def list_command(app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """List workers, their state and what each runs."""
    from forge.cli.output import print_json, print_table
    from forge.cli.project import find_database, run

    found = run(find_database(app_option, config_path), list_workers)
    if as_json:
        print_json({"items": found})
    elif not found:
        click.echo("No workers. Start one with `forge worker MODULE:APP`.")
    else:
        print_table(COLUMNS, map(_cells, found))


@click.command()
@click.argument("worker_id", type=click.UUID)
@json_option
@utc_option
@project_options
def show(app_option: str | None, config_path: Path | None, as_json: bool, worker_id: UUID) -> None:
    """Show a worker, and what it runs since when."""
    from forge.cli.output import print_columns, print_json, print_table
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    found = run(app, lambda app: app.workers.get(worker_id))
    columns = _columns(found)
    if as_json:
        print_json(columns)
        return
    current = columns.pop("current")
    columns["queues"] = columns["queues"] or "all"
    columns["silent_for"] = f"{found.silent_for:.1f} s"
    print_columns(columns)
    if current:
        click.echo("")
        print_table(CURRENT_COLUMNS, map(_current_cells, found.current))


def _moving(command: Command) -> Command:
    command = click.option("--reason", help="Why, for the audit log.")(command)
    command = click.option("--all", "is_all", is_flag=True, help="Every worker.")(command)
    command = click.argument("worker_ids", type=click.UUID, nargs=-1, metavar="ID...")(command)
    return json_option(project_options(command))


@click.command()
@_moving
def drain(**common: Any) -> None:
    """Have workers claim nothing more until they are resumed or stop; what runs goes on."""
    _set(True, **common)


@click.command()
@_moving
def resume(**common: Any) -> None:
    """Have drained workers claim again."""
    _set(False, **common)


async def list_workers(app: "Forge") -> list[dict[str, Any]]:
    """Return the known workers with their `state`: alive, drained, draining or dead."""
    return [_columns(worker) for worker in await app.workers.list()]


async def live_workers(app: "Forge") -> list[dict[str, Any]]:
    """Return the workers with a recent heartbeat."""
    return [worker for worker in await list_workers(app) if worker["state"] != "dead"]


async def require_live_worker(app: "Forge", request: "JobHandle") -> None:
    """Raise if no worker is alive to carry out a request; the request stays pending."""
    if not await live_workers(app):
        raise ForgeError(
            f"no worker is alive, so the request {request.id} stays pending; start a worker with "
            "`forge worker MODULE:APP`"
        )


def _set(
    is_drained: bool,
    *,
    worker_ids: Sequence[UUID],
    is_all: bool,
    reason: str | None,
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
) -> None:
    from forge.cli.output import print_either
    from forge.cli.project import find_database, run

    if bool(worker_ids) is is_all:
        raise click.UsageError("name workers by their ids, or all of them by --all")
    app = find_database(app_option, config_path)
    who = {"reason": reason, "actor": actor()}
    ids = run(app, lambda app: _apply(app, is_drained, worker_ids, who))
    named = ", ".join(map(str, ids)) or "no worker"
    verb = "drained" if is_drained else "resumed"
    print_either(as_json, {"workers": ids}, f"{verb}: {named}")


async def _apply(
    app: "Forge", is_drained: bool, worker_ids: Sequence[UUID], who: dict[str, Any]
) -> Sequence[UUID]:
    """Drain or resume these workers, or all for none; return their ids."""
    workers = app.workers
    if not worker_ids:
        return await (workers.drain_all(**who) if is_drained else workers.resume_all(**who))
    for worker_id in worker_ids:  # raises before it changes any
        await workers.get(worker_id)
    move = workers.drain if is_drained else workers.resume
    return [(await move(worker_id, **who)).id for worker_id in worker_ids]


def _columns(worker: "WorkerRecord") -> dict[str, Any]:
    return asdict(worker) | {"state": worker.state}


def _cells(worker: dict[str, Any]) -> tuple[Any, ...]:
    return (
        worker["id"],
        worker["state"],
        worker["hostname"],
        worker["pid"],
        f"{worker['running']}/{worker['max_concurrent']}",
        _now(worker["current"]),
        "all" if worker["queues"] is None else worker["queues"],
        worker["capabilities"],
        [*worker["job_types"], *worker["schedule_types"]],
    )


def _now(current: Sequence[dict[str, Any]]) -> str | None:
    """Name the types of what a worker runs, the longest running first."""
    types = list(dict.fromkeys(held["type"] for held in current))
    more = ["…"] if len(types) > MAX_NAMED else []
    return ", ".join([*types[:MAX_NAMED], *more]) or None


def _current_cells(held: "CurrentWork") -> tuple[Any, ...]:
    return (
        held.since,
        held.kind,
        held.id,
        held.type,
        held.queue,
        held.status,
        held.attempt,
        None if held.progress_percent is None else f"{held.progress_percent}%",
    )
