"""`forge workers`, and which workers are alive."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.options import json_option, project_options, utc_option
from forge.core.errors import ForgeError

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.jobs.handle import JobHandle

COLUMNS = ["id", "state", "host", "pid", "running", "queues", "capabilities", "types"]


@click.command()
@json_option
@utc_option
@project_options
def workers(app_option: str | None, config_path: Path | None, as_json: bool) -> None:
    """List workers and whether each is alive, draining or dead."""
    from forge.cli.output import print_json, print_table
    from forge.cli.project import find_database, run

    found = run(find_database(app_option, config_path), list_workers)
    if as_json:
        print_json({"items": found})
    elif not found:
        click.echo("No workers. Start one with `forge worker MODULE:APP`.")
    else:
        print_table(COLUMNS, map(_cells, found))


async def list_workers(app: "Forge") -> list[dict[str, Any]]:
    """Return the known workers with their `state`: alive, draining or dead."""
    from forge.store.workers import listed

    database = await (await app.session()).database()
    dead_after = app.config.worker.dead_after.total_seconds()
    return [dict(row) | {"state": _state(row, dead_after)} for row in await database.run(listed())]


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


def _state(row: Any, dead_after: float) -> str:
    if row["silent_for"] > dead_after:
        return "dead"
    return "draining" if row["draining"] else "alive"


def _cells(worker: dict[str, Any]) -> tuple[Any, ...]:
    return (
        worker["id"],
        worker["state"],
        worker["hostname"],
        worker["pid"],
        f"{worker['running']}/{worker['max_concurrent']}",
        "all" if worker["queues"] is None else worker["queues"],
        worker["capabilities"],
        [*worker["job_types"], *worker["schedule_types"]],
    )
