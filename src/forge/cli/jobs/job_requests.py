"""Requests about one job, such as `forge jobs cancel` and `move`, that a worker carries out."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from forge.cli.options import Moment, actor, json_option, project_options
from forge.cli.output import print_either
from forge.core.errors import ForgeError
from forge.core.lifecycle import Status

if TYPE_CHECKING:
    from forge.app import Forge
    from forge.jobs.handle import JobHandle

Command = TypeVar("Command", bound=Callable[..., Any])
SendRequest = Callable[["Forge", UUID, dict[str, Any]], "Awaitable[JobHandle]"]


def request_options(command: Command) -> Command:
    """Add JOB_ID, --reason, --timeout and --no-wait."""
    command = click.option(
        "--no-wait", is_flag=True, help="Do not wait for a worker to carry it out."
    )(command)
    command = click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=30,
        show_default=True,
        help="Seconds to wait for a worker.",
    )(command)
    command = click.option("--reason", help="Reason, stored in the audit log.")(command)
    command = click.argument("job_id", type=click.UUID)(command)
    return json_option(project_options(command))


@click.command()
@request_options
def cancel(reason: str | None, **common: Any) -> int:
    """Cancel a pending or running job."""
    return _request(
        lambda app, job_id, options: app.cancel(job_id, reason=reason, **options), **common
    )


@click.command()
@request_options
def delete(reason: str | None, **common: Any) -> int:
    """Fail a job that waits for a retry, cancel a pending one, or erase a final one."""
    return _request(
        lambda app, job_id, options: app.delete(job_id, reason=reason, **options), **common
    )


@click.command("run-now")
@request_options
def run_now(reason: str | None, **common: Any) -> int:
    """Make a waiting job due now."""
    return _request(
        lambda app, job_id, options: app.run_now(job_id, reason=reason, **options), **common
    )


@click.command()
@click.option("--scheduled-at", type=Moment(), help="The new time.")
@click.option("--delay", metavar="DURATION", help='How long from now, such as "2h".')
@request_options
def reschedule(
    scheduled_at: datetime | None, delay: str | None, reason: str | None, **common: Any
) -> int:
    """Give a waiting job another time."""
    if (scheduled_at is None) == (delay is None):
        raise click.UsageError("give either --scheduled-at or --delay")
    at = scheduled_at or delay or ""
    return _request(
        lambda app, job_id, options: app.reschedule(job_id, at, reason=reason, **options), **common
    )


@click.command()
@request_options
@click.argument("priority")
def reprioritise(priority: str, reason: str | None, **common: Any) -> int:
    """Give a waiting job another priority: critical, high, normal, low or background."""
    wanted: Any = int(priority) if priority.isdecimal() else priority
    return _request(
        lambda app, job_id, options: app.reprioritise(job_id, wanted, reason=reason, **options),
        **common,
    )


@click.command()
@request_options
@click.argument("queue")
def move(queue: str, reason: str | None, **common: Any) -> int:
    """Move a waiting job to another queue."""
    return _request(
        lambda app, job_id, options: app.move(job_id, queue, reason=reason, **options), **common
    )


def _request(
    send: SendRequest,
    *,
    job_id: UUID,
    app_option: str | None,
    config_path: Path | None,
    as_json: bool,
    no_wait: bool,
    timeout: float,
) -> int:
    from forge.cli.project import find_database, run

    app = find_database(app_option, config_path)
    return run(app, lambda app: _send(app, send, job_id, None if no_wait else timeout, as_json))


async def _send(
    app: "Forge", send: SendRequest, job_id: UUID, timeout: float | None, as_json: bool
) -> int:
    from forge.cli.workers import require_live_worker

    await app.get(job_id)  # raises at once if there is no such job
    handle = await send(app, job_id, {"auth": {"actor": actor()}})
    if timeout is None:
        print_either(as_json, {"request_id": handle.id}, f"requested: {handle.id}")
        return 0
    await require_live_worker(app, handle)
    record = await (await app.watcher()).final(handle.id, timeout)
    if record.status is not Status.COMPLETED:
        raise ForgeError(_reason(record.last_error))
    done = record.output["done"]
    report = {"request_id": handle.id, "job_id": job_id, "done": done}
    print_either(as_json, report, f"{job_id} {done}")
    return 0


def _reason(last_error: str | None) -> str:
    return last_error or "the request failed without an error message; see the worker's log"
