"""Follows one job in the terminal until it is final."""

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import click

from forge.cli.output import console, print_json, text
from forge.core.job import BUILTIN_TYPES, JobRecord
from forge.core.lifecycle import Status
from forge.core.sensitive.shown import shown_job

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from forge.app import Forge
    from forge.jobs.handle import JobHandle

INTERRUPTED = 130


async def follow(app: "Forge", handle: "JobHandle", as_json: bool) -> int:
    """Show a job until it is final; return 0 if it completed, 1 if not, 130 if interrupted."""
    watching = asyncio.ensure_future(_watch(app, handle, as_json))
    # Ctrl-C stops the watching, not the job.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, watching.cancel)
    try:
        record = await watching
    except asyncio.CancelledError:
        click.echo(f"stopped watching; the job continues: `forge jobs show {handle.id}`", err=True)
        return INTERRUPTED
    if not as_json:
        _print_end(record)
    return 0 if record.status is Status.COMPLETED else 1


async def follow_request(app: "Forge", handle: "JobHandle", as_json: bool) -> bool:
    """Show the progress of a built-in job until it is final; return False if interrupted."""
    watching = asyncio.ensure_future(_wait(app, handle) if as_json else _watch(app, handle, False))
    # Ctrl-C stops the watching, not the job.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, watching.cancel)
    try:
        await watching
    except asyncio.CancelledError:
        advice = f"it continues: `forge jobs cancel {handle.id}` stops it"
        click.echo(f"stopped watching; {advice}", err=True)
        return False
    return True


async def _wait(app: "Forge", handle: "JobHandle") -> JobRecord:
    return await (await app.watcher()).final(handle.id, None)


async def _watch(app: "Forge", handle: "JobHandle", as_json: bool) -> JobRecord:
    if as_json:
        async for record in _updates(app, handle):
            print_json(record, indent=None)
        return record
    screen = console(stderr=True)
    if screen.is_terminal:
        return await _draw(app, handle, _bar(screen))
    async for record in _updates(app, handle):
        line = f"{_status(record)} {_percent(record)}% {await _message(app, record)}"
        click.echo(line.strip(), err=True)
    return record


async def _draw(app: "Forge", handle: "JobHandle", bar: "Progress") -> JobRecord:
    with bar:
        task = bar.add_task("", total=100, status="", message="")
        async for record in _updates(app, handle):
            message = await _message(app, record)
            status, percent = _status(record), _percent(record)
            bar.update(task, completed=percent, status=status, message=message)
    return record


async def _updates(app: "Forge", handle: "JobHandle") -> AsyncIterator[JobRecord]:
    """Yield the job at each change, redacted."""
    async for record in handle.updates():
        yield shown_job(record, await app.catalog.sensitive_allowed(record.job_type))


def _bar(screen: "Console") -> "Progress":
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.fields[status]}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[message]}", markup=False),
        console=screen,
    )


def _status(record: JobRecord) -> str:
    """Return the status; a built-in job that carries out a request is pending between slices."""
    return "" if record.job_type.startswith(BUILTIN_TYPES) else str(record.status)


def _percent(record: JobRecord) -> int:
    return 100 if record.status is Status.COMPLETED else record.progress_percent or 0


async def _message(app: "Forge", record: JobRecord) -> str:
    if record.status is Status.RETRY:
        return f"attempt {record.attempts} failed: {text(record.last_error)}"
    is_builtin = record.job_type.startswith(BUILTIN_TYPES)
    if record.status is Status.PENDING and not is_builtin and not await _has_worker(app, record):
        return "no live worker runs this type; start one with `forge worker`"
    return text(record.progress_message or "")


async def _has_worker(app: "Forge", record: JobRecord) -> bool:
    from forge.cli.workers import live_workers

    workers = await live_workers(app)
    return any(record.job_type in worker["job_types"] for worker in workers)


def _print_end(record: JobRecord) -> None:
    if record.status is Status.COMPLETED:
        print_json(record.output)
        return
    click.echo(f"{record.status}: {text(record.last_error)}", err=True)
    click.echo(f"details: `forge jobs show {record.id}`", err=True)
