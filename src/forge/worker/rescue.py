"""Rescue: jobs and schedule runs of dead workers become claimable again."""

from contextlib import suppress
from uuid import UUID

from forge.core.errors import StatementRefused
from forge.core.events import AttemptLost, Events, JobsRescued
from forge.core.lifecycle import Status
from forge.store import jobs, schedules
from forge.store.connection.link import Link
from forge.store.notify import WAKE, send
from forge.store.statement import Row, Rows

BATCH = 1000


async def rescue_runs(
    link: Link,
    owners: list[UUID] | None,
    dead_after: float,
    stale_after: float,
    events: Events,
) -> None:
    """Release the runs of these owners, or of any, that died or have been unknown for long."""
    while True:
        found = await link.run(
            schedules.rescue(owners, dead_after=dead_after, stale_after=stale_after, limit=BATCH)
        )
        await _report(link, found, events)
        if len(found) < BATCH:
            return


async def rescue(
    link: Link, owners: list[UUID], dead_after: float, stale_after: float, events: Events
) -> None:
    """Rescue every job of these owners, a batch at a time."""

    async def rescue_batch(only: list[UUID] | None) -> int:
        found = await link.run(
            jobs.rescue(owners, only, dead_after=dead_after, stale_after=stale_after, limit=BATCH)
        )
        for row in found:
            if row["was"] == Status.RUNNING:
                events.emit(_lost(row))
        await _report(link, found, events)
        return len(found)

    try:
        while await rescue_batch(None) == BATCH:
            pass
    except StatementRefused as error:
        events.notice("error", "a rescue failed; its jobs are rescued one by one", error=str(error))
        for job_id in await link.run(jobs.owned_by(owners)):
            with suppress(StatementRefused):
                await rescue_batch([job_id])


async def _report(link: Link, rescued: Rows, events: Events) -> None:
    """Report whose jobs were rescued, and wake workers for them."""
    if rescued:
        ids = tuple(row["id"] for row in rescued)
        events.emit(JobsRescued(ids, tuple({row["worker_id"] for row in rescued})))
        await link.run(send(WAKE))


def _lost(row: Row) -> AttemptLost:
    return AttemptLost(
        row["id"],
        row["job_type"],
        row["queue"],
        row["attempt"],
        row["crashes"],
        row["tenant_id"],
        row["correlation_id"],
        row["seconds"],
    )
