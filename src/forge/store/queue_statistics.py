"""Statistics of the queue, each from a bounded number of rows."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.dead_letter import Statistics
from forge.store.statement import Row, Rows, Statement, load, rows

# Up to this many jobs are counted exactly: that is fast enough for an HTTP response.
MAX_COUNTED = 20_000
# Recent jobs that are read to see how quickly a lane starts them.
MAX_STARTS_READ = 1000


class JobCounts(NamedTuple):
    """Counts of jobs, exact or estimated from the planner's statistics."""

    counts: Statistics
    is_exact: bool


class WorkerGroup(NamedTuple):
    """Live workers with the same capabilities and queues."""

    capabilities: list[str]
    queues: list[str] | None
    workers: int
    running: int
    slots: int


async def count_jobs(
    run: Callable[[Statement[Any]], Awaitable[Any]], tenant: int | None
) -> JobCounts:
    """Count jobs by status, category, type and error class, in bounded time."""
    found = Statistics.from_rows(await run(counted(tenant)))
    if found.total <= MAX_COUNTED:
        return JobCounts(found, True)
    if tenant is None:
        guessed = await estimate_jobs(run)
        # The planner has no statistics yet for a table that was just filled.
        return JobCounts(max(guessed, found, key=lambda counts: counts.total), False)
    return JobCounts(found, False)


async def estimate_jobs(run: Callable[[Statement[Any]], Awaitable[Any]]) -> Statistics:
    """Estimate the counts of all jobs; for operators only."""
    return _from_estimates(await run(estimated()))


def counted(tenant: int | None) -> Statement[Rows]:
    """Count up to one more than MAX_COUNTED jobs."""
    if tenant is None:
        return Statement(load("jobs/statistics"), (MAX_COUNTED + 1,), rows)
    return Statement(load("jobs/statistics_of_tenant"), (MAX_COUNTED + 1, tenant), rows)


def estimated() -> Statement[Rows]:
    return Statement(load("jobs/statistics_estimated"), (MAX_COUNTED + 1,), rows)


def depth(limit: int) -> Statement[Rows]:
    return Statement(load("jobs/depth"), (limit,), rows)


def owned_by_type() -> Statement[Rows]:
    return Statement(load("jobs/owned_by_type"), (), rows)


def dead_letters() -> Statement[Rows]:
    return Statement(load("dead_letters/waiting"), (), rows)


def oldest_snapshots() -> Statement[Rows]:
    return Statement(load("doctor/oldest_snapshots"), (), rows)


def worker_groups(dead_after: float) -> Statement[list[WorkerGroup]]:
    return Statement(
        load("workers/crews"),
        (dead_after,),
        lambda found: [WorkerGroup(*row.values()) for row in found],
    )


def ahead(job_id: UUID, limit: int) -> Statement[Row | None]:
    """Read how many jobs are ahead of a waiting job, up to a limit."""
    return Statement(load("jobs/ahead"), (job_id, limit), lambda found: found[0] if found else None)


def started_lately(job_id: UUID) -> Statement[list[float]]:
    """Read how many seconds ago the latest jobs of the same lane were started."""
    return Statement(
        load("jobs/started_lately"),
        (job_id, MAX_STARTS_READ),
        lambda found: [row["ago"] for row in found],
    )


def _from_estimates(found: Rows) -> Statistics:
    by: dict[str, dict[str, int]] = {}
    for row in found:
        by.setdefault(row["name"], {})[row["value"] or "none"] = row["jobs"]
    total = sum(by.get("status", {}).values())
    fields = {"status": "by_status", "category": "by_category", "job_type": "by_type"}
    counts: dict[str, Any] = {field: by.get(column, {}) for column, field in fields.items()}
    return Statistics(total, **counts, by_error_class=by.get("error_class", {}))
