"""Statements on forge_statistics and forge_tenant_statistics, one function each."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.histogram import buckets_of
from forge.core.job_statistics import OUTCOMES, StatisticsWindow, Sums, Tally
from forge.core.payload import encode
from forge.store.statement import Row, Rows, Statement, ids, load

# What workers count in memory; the statements that cancel and reprocess count the other outcomes.
COUNTED = ("completed", "failed", "retried", "crashed", "released", "snoozed")


class Slot(NamedTuple):
    """A minute, as seconds since the epoch, of a job type and queue: one row of one writer."""

    minute: int
    job_type: str
    queue: str


class TenantSlot(NamedTuple):
    """Five minutes of a tenant."""

    minute: int
    tenant_id: int


class Written(NamedTuple):
    """The minutes that the database accepted."""

    minutes: frozenset[int]
    of_tenants: frozenset[int]

    def has(self, slot: Slot | TenantSlot) -> bool:
        minutes = self.minutes if isinstance(slot, Slot) else self.of_tenants
        return slot.minute in minutes


class Merged(NamedTuple):
    """How many rows a merge made, and before when everything is merged."""

    made: int
    bound: datetime


def write(tallies: Mapping[Slot | TenantSlot, Tally], writer: UUID) -> Statement[Written]:
    """Write what a worker has counted in these minutes: all of it, not what was added."""
    own = [_row(slot, tally) for slot, tally in tallies.items() if isinstance(slot, Slot)]
    of_tenants = [
        _outcomes(slot, tally) for slot, tally in tallies.items() if isinstance(slot, TenantSlot)
    ]
    args = (encode(own), encode(of_tenants), writer)
    return Statement(load("statistics/write"), args, _written)


def merge(since: datetime, older_than: float, step: float, limit: int) -> Statement[Merged]:
    args = (since, older_than, step, limit)
    return Statement(load("statistics/merge"), args, _merged)


def merge_of_tenants(
    since: datetime, older_than: float, step: float, limit: int
) -> Statement[Merged]:
    args = (since, older_than, step, limit)
    return Statement(load("statistics/merge_of_tenants"), args, _merged)


def prune(seconds: float, limit: int) -> Statement[list[Any]]:
    return Statement(load("statistics/prune"), (seconds, limit), ids)


def prune_of_tenants(seconds: float, limit: int) -> Statement[list[Any]]:
    return Statement(load("statistics/prune_of_tenants"), (seconds, limit), ids)


def series(
    window: StatisticsWindow, job_type: str | None, queue: str | None
) -> Statement[list[Sums]]:
    """Read the statistics of all tenants, by step."""
    args = (*_bounds(window), window.step.total_seconds(), job_type, queue)
    return Statement(load("statistics/series"), args, lambda found: [_sums(r, "at") for r in found])


def by_type(
    window: StatisticsWindow, job_type: str | None, queue: str | None
) -> Statement[list[Sums]]:
    """Read the statistics of all tenants, by job type and queue."""
    return Statement(load("statistics/by_type"), (*_bounds(window), job_type, queue), _by_type)


def series_of_tenant(window: StatisticsWindow, tenant: int) -> Statement[list[Sums]]:
    """Read the outcomes of a tenant's jobs, by step."""
    args = (*_bounds(window), window.step.total_seconds(), tenant)
    return Statement(
        load("statistics/series_of_tenant"), args, lambda found: [_sums(r, "at") for r in found]
    )


def total_of_tenant(window: StatisticsWindow, tenant: int) -> Statement[list[Sums]]:
    """Read the outcomes of a tenant's jobs, added up."""
    args = (*_bounds(window), (window.until - window.since).total_seconds(), tenant)
    return Statement(load("statistics/series_of_tenant"), args, _total)


def _row(slot: Slot, tally: Tally) -> dict[str, Any]:
    waits, runs = buckets_of(tally.waits), buckets_of(tally.runs)
    return _outcomes(slot, tally) | {
        "wait_buckets": list(waits),
        "wait_counts": list(waits.values()),
        "run_buckets": list(runs),
        "run_counts": list(runs.values()),
    }


def _outcomes(slot: Slot | TenantSlot, tally: Tally) -> dict[str, Any]:
    minute = datetime.fromtimestamp(slot.minute, UTC).isoformat()
    counts = {name: tally.outcomes[name] for name in COUNTED}
    return slot._asdict() | {"minute": minute} | counts


def _written(found: Rows) -> Written:
    def minutes(of_tenants: bool) -> frozenset[int]:
        return frozenset(row["minute"] for row in found if row["of_tenants"] is of_tenants)

    return Written(minutes(False), minutes(True))


def _merged(found: Rows) -> Merged:
    return Merged(*found[0].values())


def _bounds(window: StatisticsWindow) -> tuple[datetime, datetime]:
    return window.since, window.until


def _by_type(found: Rows) -> list[Sums]:
    return [_sums(row, "job_type", "queue") for row in found]


def _total(found: Rows) -> list[Sums]:
    outcomes = {name: sum(row[name] for row in found) for name in OUTCOMES}
    return [Sums((None, None), outcomes, {}, {})]


def _sums(row: Row, *keys: str) -> Sums:
    outcomes = {name: row[name] for name in OUTCOMES}
    key = tuple(row[name] for name in keys) if len(keys) > 1 else row[keys[0]]
    return Sums(key, outcomes, _histogram(row, "wait"), _histogram(row, "run"))


def _histogram(row: Row, name: str) -> dict[int, int]:
    if f"{name}_buckets" not in row:  # tenants have no histograms
        return {}
    return dict(zip(row[f"{name}_buckets"], row[f"{name}_counts"], strict=True))
