"""How many jobs there are, by what: exact while they are few, an estimate when they are many."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from forge.core.dead_letter import Statistics
from forge.store.statement import Rows, Statement, load, rows

# So many can be counted one by one within the time that somebody waits for an answer.
MOST_COUNTED = 20_000


class JobCounts(NamedTuple):
    """Statistics of the queue, and whether they are exact or taken from the planner's own."""

    counts: Statistics
    is_exact: bool


def counted(tenant: int | None) -> Statement[Rows]:
    """Count up to one more than MOST_COUNTED jobs."""
    if tenant is None:
        return Statement(load("jobs/statistics"), (MOST_COUNTED + 1,), rows)
    return Statement(load("jobs/statistics_of_tenant"), (MOST_COUNTED + 1, tenant), rows)


def estimated() -> Statement[Rows]:
    return Statement(load("jobs/statistics_estimated"), (MOST_COUNTED + 1,), rows)


async def count_jobs(
    run: Callable[[Statement[Any]], Awaitable[Any]], tenant: int | None
) -> JobCounts:
    """Count jobs by status, category, type and error class, in bounded time."""
    found = Statistics.from_rows(await run(counted(tenant)))
    if found.total <= MOST_COUNTED:
        return JobCounts(found, True)
    if tenant is None:
        guessed = await estimate_jobs(run)
        # The planner knows nothing of a table that was filled a moment ago.
        return JobCounts(max(guessed, found, key=lambda counts: counts.total), False)
    return JobCounts(found, False)


async def estimate_jobs(run: Callable[[Statement[Any]], Awaitable[Any]]) -> Statistics:
    """Return about how many jobs there are, by what; for operators alone."""
    return _from_estimates(await run(estimated()))


def _from_estimates(found: Rows) -> Statistics:
    by: dict[str, dict[str, int]] = {}
    for row in found:
        by.setdefault(row["name"], {})[row["value"] or "none"] = row["jobs"]
    total = sum(by.get("status", {}).values())
    places = {"status": "by_status", "category": "by_category", "job_type": "by_type"}
    shown: dict[str, Any] = {place: by.get(column, {}) for column, place in places.items()}
    return Statistics(total, **shown, by_error_class=by.get("error_class", {}))
