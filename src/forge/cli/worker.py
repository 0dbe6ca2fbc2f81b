"""`forge worker`: claims and runs jobs until it is told to stop."""

import asyncio
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forge.cli.log_output import LEVELS, set_up_logging
from forge.cli.offspring import CANNOT_BEGIN, obey
from forge.cli.options import project_options

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.config import Config
    from forge.worker.worker import Worker

HANDLERS = "forge-handler"


@click.command()
@click.argument("app_argument", metavar="[MODULE:APP]", required=False)
@click.option(
    "--processes", type=click.IntRange(1, 256), help="How many workers to run, each a process."
)
@click.option("--queue", "queues", multiple=True, help="Serve only this queue; may be repeated.")
@click.option(
    "--capability", "capabilities", multiple=True, help="What this worker can do; may be repeated."
)
@click.option(
    "--max-concurrent", type=click.IntRange(1, 10_000), help="How many jobs to run at once."
)
@click.option("--log-format", type=click.Choice(["text", "json"]), help="How log lines look.")
@click.option(
    "--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="How much."
)
@click.option("--migrate", "migrates", is_flag=True, hidden=True)
@click.option("--lifeline", type=int, hidden=True)
@click.option("--reports", type=int, hidden=True)
@project_options
def worker(
    app_argument: str | None,
    app_option: str | None,
    config_path: Path | None,
    processes: int | None,
    lifeline: int | None,
    reports: int | None,
    migrates: bool,
    log_format: str | None,
    log_level: str,
    **overrides: Any,
) -> int:
    """Run a worker: it claims and runs jobs until it is told to stop.

    The first SIGTERM or Ctrl-C lets it finish what it has begun; the second gives that back.
    """
    from forge.cli.project import find_app, run
    from forge.core.errors import AccessRefused, SchemaMissing

    # Told to stop while it still imports the app: nothing has begun, so that it just ends.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    app = find_app(app_argument or app_option, config_path)
    app.config = _overridden(app.config, overrides)
    set_up_logging(log_format, log_level)
    count = processes or app.config.worker.processes
    if lifeline is None and count > 1:
        return _supervise(app, count)
    try:
        run(app, lambda app: _work(app, lifeline, reports, migrates))
    except (AccessRefused, SchemaMissing) as error:
        if lifeline is None:
            raise
        logging.getLogger("forge").error("%s", error)
        return CANNOT_BEGIN
    return 0


async def _work(app: "Forge", lifeline: int | None, reports: int | None, migrates: bool) -> None:
    from forge.cli.metrics_output import measured
    from forge.telemetry.logs import log_events
    from forge.worker.worker import Worker

    log_events(app.events)
    if migrates:
        await _migrate(app)
    worker = Worker(app)
    running = asyncio.ensure_future(worker.run())
    _obey_signals(worker, running, lifeline)
    greeting = asyncio.ensure_future(greet(worker))
    try:
        async with measured(worker, reports):
            await running
    except asyncio.CancelledError:
        logging.getLogger("forge").info("worker %s stopped before it began", worker.registration.id)
    finally:
        greeting.cancel()
    await app.close()
    _leave_what_hangs()


def _obey_signals(worker: "Worker", running: "asyncio.Future[None]", lifeline: int | None) -> None:
    log = logging.getLogger("forge")
    asked = 0

    def stop() -> None:
        nonlocal asked
        asked += 1
        if not worker.started.is_set():
            running.cancel()
        elif asked == 1:
            log.info("finishing what has begun; a second signal gives it back")
            worker.drain()
        else:
            log.info("giving back what is not done")
            worker.release()

    obey(stop, lifeline)


async def greet(worker: "Worker") -> None:
    """Say what the worker runs, once it has begun."""
    from forge.worker.garbage import spare_the_collector

    await worker.started.wait()
    spare_the_collector()
    who = worker.registration
    logging.getLogger("forge").info(
        "worker %s runs %s; queues: %s; capabilities: %s; %d at a time",
        who.id,
        ", ".join([*who.job_types, *who.schedule_types])
        or "no types, for the app has none registered",
        "all" if who.queues is None else ", ".join(who.queues),
        ", ".join(who.capabilities) or "none",
        who.max_concurrent,
    )


async def _migrate(app: "Forge") -> None:
    from forge.config_values import without_password
    from forge.store.migrate import migrate

    database = await (await app.session()).database()
    await migrate(database)
    click.echo(f"database: {without_password(database.url)}", err=True)


def _overridden(config: "Config", given: dict[str, Any]) -> "Config":
    """Put what the command line says in the place of what the settings say."""
    from pydantic import ValidationError

    from forge.core.errors import InvalidValue

    changes = {name: value for name, value in given.items() if value}
    try:
        worker = type(config.worker).model_validate(config.worker.model_dump() | changes)
    except ValidationError as error:
        fault = error.errors()[0]
        message = fault["msg"].removeprefix("Value error, ")
        raise InvalidValue(f"[worker] {fault['loc'][0]} {message}") from None
    return config.model_copy(update={"worker": worker})


def _supervise(app: "Forge", count: int) -> int:
    from forge.cli.supervisor import supervise
    from forge.core.errors import ConfigError

    if app.config.worker.id is not None:
        raise ConfigError(
            f"{count} workers cannot share one [worker] id; remove it, so that each picks its own, "
            "or run one process per id"
        )
    return asyncio.run(supervise(sys.argv[1:], count, app.config.worker))


def _leave_what_hangs() -> None:
    """End although a handler does not: its job was given back already."""
    tasks = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(HANDLERS)]
    if tasks or threads:
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
