"""Work that no living worker would take, and why none would."""

from collections.abc import Sequence
from typing import Any

from forge.requests import QUEUE
from forge.store import job_types
from forge.store.database import Database
from forge.store.jobs import Lane
from forge.store.statement import Rows
from forge.store.workers import Registration
from forge.worker.serving import serves


def unserved_lanes(
    lanes: Sequence[Lane], living: Sequence[dict[str, Any]]
) -> list[tuple[str, str]]:
    """Return what is due and waits in vain, each with what to do about it."""
    workers = [Registration(**{name: row[name] for name in Registration._fields}) for row in living]
    unserved = {
        (lane.job_type, lane.queue, lane.worker_capability): lane
        for lane in lanes
        if not lane.due_in and not any(serves(worker, lane) for worker in workers)
    }
    return [_explain(lane, workers) for lane in unserved.values()]


async def types_without_worker(database: Database, living: Sequence[dict[str, Any]]) -> list[str]:
    """Return the registered types that no living worker runs."""
    run = {name for worker in living for name in worker["job_types"]}
    return [row["name"] for row in await database.run(job_types.listed()) if row["name"] not in run]


def unserved_schedules(types: Rows, living: Sequence[dict[str, Any]]) -> str:
    """Name the enabled schedules that no living worker runs, by type."""
    return ", ".join(
        f"{row['enabled']} of type {row['type']}{_for(row['worker_capability'])}"
        for row in types
        if row["enabled"] and not has_worker(row["type"], row["worker_capability"], living)
    )


def has_worker(type: str, capability: str | None, living: Sequence[dict[str, Any]]) -> bool:
    """Whether one of these workers runs schedules of this type and capability."""
    return any(
        type in worker["schedule_types"]
        and (capability is None or capability in worker["capabilities"])
        for worker in living
    )


def _for(capability: str | None) -> str:
    return "" if capability is None else f" for the capability {capability}"


def _explain(lane: Lane, workers: Sequence[Registration]) -> tuple[str, str]:
    what = f"jobs of type {lane.job_type} wait in queue {lane.queue}"
    if lane.queue == QUEUE:
        return f"{what} and no worker is alive", "start `forge worker MODULE:APP`"
    able = [worker for worker in workers if lane.job_type in worker.job_types]
    if not able:
        return f"{what} and no living worker has that type", "start a worker whose app registers it"
    serving = [worker for worker in able if worker.queues is None or lane.queue in worker.queues]
    if not serving:
        advice = f"start one with --queue {lane.queue}"
        return f"{what}, which no living worker of that type serves", advice
    advice = f"start one with --capability {lane.worker_capability}"
    return f"{what} for the capability {lane.worker_capability}, which none of them has", advice
