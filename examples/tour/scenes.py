"""The scenes of the tour: three concurrent jobs, then ten thousand at once."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from examples.tour.app import (
    Cake,
    app,
    bake_cake,
    call_flaky_service,
    count_letters,
    send_reminder,
)
from examples.tour.screen import Line, Screen

from forge import JobRecord, Status
from forge.store.connection.database import Database

MANY = 10_000

# The queue is an ordinary table. Every job of this run has the same correlation id.
COUNT_COMPLETED = """
    select count(*) from forge_jobs
    where id > $1 and correlation_id = $2 and job_type = 'count_letters' and status = 'completed'
"""
SUMMARY = """
    select job_type, status, count(*) as jobs, sum(attempts) as attempts,
           extract(epoch from max(completed_at) - min(created_at))::float8 as seconds
    from forge_jobs
    where id >= $1 and correlation_id = $2
    group by job_type, status
    order by job_type, status
"""


async def show_all(database: Database, screen: Screen) -> None:
    """Run every scene and print a summary of the rows in the database."""
    run = uuid4()
    screen.say(f"Two workers run in separate processes. This run is {run}.\n")
    with screen.lines() as lines:
        first, *_ = await asyncio.gather(
            show_progress(lines.add("bake_cake"), run),
            show_retries(lines.add("call_flaky_service"), run),
            show_schedule(lines.add("send_reminder"), run),
        )
        await show_many(lines.add("count_letters"), run, first, database)
    async with database.acquire() as conn:
        rows = await conn.fetch(SUMMARY, lowest_id_at(first), run)
    screen.say("\nFrom the first dispatch to the last completion, according to forge_jobs:\n")
    screen.table(["job type", "status", "jobs", "attempts", "seconds", "jobs/s"], map(cells, rows))


async def show_progress(line: Line, run: UUID) -> UUID:
    """Dispatch a job and follow its progress."""
    handle = await bake_cake.dispatch(Cake(flavour="cherry", layers=3), correlation_id=run)
    async for job in handle.updates():
        if not job.is_final:
            line.show(job.progress_percent or 0, job.status, job.progress_message or "")
    show_end(line, job)
    return handle.id


async def show_retries(line: Line, run: UUID) -> None:
    """Follow a job that fails, waits longer each time, and succeeds."""
    handle = await call_flaky_service.dispatch(correlation_id=run)
    async for job in handle.updates():
        if job.status is Status.RETRY:
            wait = seconds_until(job.scheduled_at)
            message = f"attempt {job.attempts} failed: {job.last_error}; again in {wait:.1f} s"
            line.show(100 * job.attempts / job.max_attempts, job.status, message)
    show_end(line, job)


async def show_schedule(line: Line, run: UUID) -> None:
    """Count down until a delayed job is due."""
    handle = await send_reminder.dispatch({"text": "tea"}, delay="2s", correlation_id=run)
    job = await handle.get()
    while (left := seconds_until(job.scheduled_at)) > 0:
        line.show(100 - 50 * left, job.status, f"due in {left:.0f} s")
        await asyncio.sleep(0.1)
    await handle.result(timeout=30)
    show_end(line, await handle.get())


async def show_many(line: Line, run: UUID, first: UUID, database: Database) -> None:
    """Dispatch ten thousand jobs in one transaction, and count the completed ones."""
    words = ({"word": "o" * (number % 50)} for number in range(MANY))
    started = time.monotonic()
    await app.dispatch_many(count_letters, words, correlation_id=run)
    dispatched = time.monotonic()
    done = 0
    while done < MANY:
        await asyncio.sleep(0.1)
        async with database.acquire() as conn:
            done = await conn.fetchval(COUNT_COMPLETED, first, run)
        per_second = done / (time.monotonic() - dispatched)
        message = f"{done:,} of {MANY:,} done, {per_second:,.0f} a second"
        line.show(100 * done / MANY, "completed" if done == MANY else "running", message)
    line.show(100, "completed", f"{message}; dispatched in {dispatched - started:.2f} s")


def show_end(line: Line, job: JobRecord) -> None:
    line.show(100, job.status, str(job.output if job.output is not None else job.last_error))


def cells(row: Any) -> tuple[str, ...]:
    job_type, status, jobs, attempts, seconds = row
    return (
        job_type,
        status,
        f"{jobs:,}",
        f"{attempts:,}",
        f"{seconds:.2f}",
        f"{jobs / seconds:,.1f}",
    )


def seconds_until(moment: datetime) -> float:
    return (moment - datetime.now(UTC)).total_seconds()


def lowest_id_at(job_id: UUID) -> UUID:
    """Return the lowest id with the same timestamp: ids begin with their creation time."""
    return UUID(int=job_id.int >> 80 << 80)
