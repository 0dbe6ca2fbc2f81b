"""`forge worker`: claims and runs jobs until SIGTERM or Ctrl-C."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from forge.cli.options import project_options
from forge.cli.processes.child_process import (
    STARTUP_FAILED,
    on_stop_signal,
    tune_garbage_collector,
)
from forge.cli.processes.service_manager import ServiceManager

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.config.settings import Config
    from forge.worker.worker import Worker

Command = TypeVar("Command", bound=Callable[..., Any])
LEVELS = ["debug", "info", "warning", "error", "off"]


def log_options(command: Command) -> Command:
    """Add --log-format and --log-level."""
    command = click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        show_default=True,
        help="Lowest level to log.",
    )(command)
    return click.option(
        "--log-format", type=click.Choice(["text", "json"]), help="Format of the log lines."
    )(command)


def set_up_logging(log_format: str | None, level: str) -> None:
    """Log to stderr, unless the app has configured logging and no format is given."""
    from forge.telemetry.logs.lines import LineHandler
    from forge.telemetry.logs.listener import JsonFormatter, TextFormatter

    number = (
        logging.CRITICAL + 1 if level == "off" else logging.getLevelNamesMapping()[level.upper()]
    )
    logging.getLogger("forge").setLevel(number)
    if logging.getLogger().handlers and log_format is None:
        return
    handler = LineHandler(is_json=log_format == "json")
    handler.setFormatter(JsonFormatter() if handler.is_json else TextFormatter())
    logging.basicConfig(handlers=[handler], level=number, force=True)


# Prefix of the names of handler threads.
HANDLER_THREADS = "forge-handler"


@click.command()
@click.argument("app_argument", metavar="[MODULE:APP]", required=False)
@click.option(
    "--processes", type=click.IntRange(1, 256), help="Number of workers to run, each as a process."
)
@click.option("--queue", "queues", multiple=True, help="Serve only this queue; may be repeated.")
@click.option(
    "--capability",
    "capabilities",
    multiple=True,
    help="Capability of this worker; may be repeated.",
)
@click.option(
    "--max-concurrent", type=click.IntRange(1, 10_000), help="Number of jobs to run at once."
)
@log_options
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
    """Run a worker, which claims and runs jobs.

    The first SIGTERM or Ctrl-C lets it finish running jobs; the second releases them.
    """
    from forge.cli.project import find_app, run
    from forge.core.errors import AccessRefused, SchemaMissing

    # A signal while the app is being imported: nothing has started, so exit cleanly.
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
        return STARTUP_FAILED
    return 0


async def _work(app: "Forge", lifeline: int | None, reports: int | None, migrates: bool) -> None:
    from forge.cli.processes.metrics_output import measured
    from forge.telemetry.logs.listener import log_events
    from forge.worker.worker import Worker

    manager = ServiceManager.from_environment()
    app.events.other_listeners.append(manager.listen)
    log_events(app.events)
    if migrates:
        await _migrate(app)
    worker = Worker(app)
    running = asyncio.ensure_future(worker.run())
    _handle_signals(worker, running, manager, lifeline)
    startup = asyncio.ensure_future(report_startup(worker, manager))
    try:
        async with measured(worker, reports):
            await running
    except asyncio.CancelledError:
        logging.getLogger("forge").info(
            "worker %s stopped before it started", worker.registration.id
        )
    finally:
        startup.cancel()
    await app.close()
    _exit_despite_hanging_handlers()


def _handle_signals(
    worker: "Worker",
    running: "asyncio.Future[None]",
    manager: ServiceManager,
    lifeline: int | None,
) -> None:
    log = logging.getLogger("forge")
    signals = 0

    def stop() -> None:
        nonlocal signals
        signals += 1
        manager.stopping()
        if not worker.started.is_set():
            running.cancel()
        elif signals == 1:
            log.info("finishing running jobs; a second signal releases them")
            worker.drain()
        else:
            log.info("releasing unfinished jobs")
            worker.release()

    on_stop_signal(stop, lifeline)


async def report_startup(worker: "Worker", manager: ServiceManager) -> None:
    """Log what the worker runs once it has started, and report it to the service manager."""
    await worker.started.wait()
    manager.ready()
    tune_garbage_collector()
    registration = worker.registration
    logging.getLogger("forge").info(
        "worker %s runs %s; queues: %s; capabilities: %s; %d at a time",
        registration.id,
        ", ".join([*registration.job_types, *registration.schedule_types])
        or "no types (the app registers none)",
        "all" if registration.queues is None else ", ".join(registration.queues),
        ", ".join(registration.capabilities) or "none",
        registration.max_concurrent,
    )


async def _migrate(app: "Forge") -> None:
    from forge.config.values import without_password
    from forge.store.migrate import migrate

    database = await (await app.session()).database()
    await migrate(database)
    click.echo(f"database: {without_password(database.url)}", err=True)


def _overridden(config: "Config", given: dict[str, Any]) -> "Config":
    """Override settings with command-line options."""
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
    from forge.cli.processes.supervisor import supervise
    from forge.core.errors import ConfigError

    if app.config.worker.id is not None:
        raise ConfigError(
            f"{count} workers cannot share one [worker] id; remove it so that each gets its own, "
            "or run one process per id"
        )
    return asyncio.run(supervise(sys.argv[1:], count, app.config.worker))


def _exit_despite_hanging_handlers() -> None:
    """Exit even if a handler does not end; its job is already released."""
    tasks = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
    threads = [
        thread for thread in threading.enumerate() if thread.name.startswith(HANDLER_THREADS)
    ]
    if tasks or threads:
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
