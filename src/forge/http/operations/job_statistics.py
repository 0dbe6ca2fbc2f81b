"""Statistics of jobs over time, and what waits and runs now."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from forge.core.backlog import COUNTED_PER_LANE, BacklogItem
from forge.core.job_statistics import MAX_POINTS, Group
from forge.http.auth.access import Caller, OperatingStaff, User
from forge.http.fields import Duration, Items, Name, TenantId
from forge.http.jobs.shapes import Count
from forge.http.problems.problem import problems
from forge.jobs.statistics_reader import StatisticsFilters, read_backlog, read_by_type, read_series

router = APIRouter(tags=["statistics"])


class Milliseconds(BaseModel):
    """Percentiles in milliseconds, up to 10% off; null where nothing was measured."""

    p50: float | None
    p95: float | None
    p99: float | None


class StatisticsPointOut(BaseModel):
    """One step of the series."""

    at: datetime = Field(description="The beginning of the step.")
    completed: int
    failed: int = Field(description="Jobs that ended as failed or dead_letter.")
    retried: int = Field(description="Attempts that failed and are tried again.")
    crashed: int = Field(description="Attempts whose worker or process died, or lost the database.")
    wait_ms: Milliseconds = Field(description="From scheduled_at to the start of an attempt.")
    run_ms: Milliseconds = Field(description="From the start of an attempt to its end.")


class Window(BaseModel):
    """The time that statistics are about, in whole steps."""

    model_config = ConfigDict(populate_by_name=True)

    since: datetime = Field(alias="from")
    until: datetime = Field(alias="to")


class JobStatisticsOut(Window):
    """Statistics by step; steps without jobs are included."""

    step: Duration
    series: list[StatisticsPointOut] = Field(max_length=MAX_POINTS)


class TypeStatisticsOut(BaseModel):
    """The totals of one job type and queue."""

    job_type: str | None = Field(
        description="Null for a tenant, and where the totals of all types are added up."
    )
    queue: str | None = Field(
        description="Null for a tenant, and where the totals of all queues are added up."
    )
    per_minute: float = Field(description="Jobs that completed or failed, per minute.")
    failed_percent: float | None = Field(description="Of these. Null if none ended.")
    completed: int
    failed: int
    retried: int
    crashed: int
    cancelled: int
    released: int = Field(description="Attempts that a stopping worker gave back.")
    snoozed: int
    reprocessed: int = Field(description="Dead letters that became new jobs.")
    wait_ms: Milliseconds
    run_ms: Milliseconds


class StatisticsByTypeOut(Window):
    """Totals by job type and queue, those with the most jobs first."""

    items: list[TypeStatisticsOut]


class BacklogItemOut(BaseModel):
    """The jobs of one type, queue and capability that are due or held by a worker."""

    job_type: str
    queue: str
    worker_capability: str | None
    ready: Count = Field(
        description=f"Jobs that are due and wait; `at_least` beyond {COUNTED_PER_LANE:,} of one "
        "priority."
    )
    oldest_seconds: float | None = Field(
        description="For how long the oldest of them has been due; null: none is."
    )
    running: int = Field(description="Jobs that workers run or have fetched.")


Since = Annotated[
    AwareDatetime | None, Query(alias="from", description="Default: an hour before `to`.")
]
Until = Annotated[AwareDatetime | None, Query(alias="to", description="Default: now.")]
Step = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9]+(m|h|d)$",
        description="Default: from 1m to 1d, so that there are at most 200 points. Whole hours "
        "where `from` is more than 48 hours ago; whole five minutes for a tenant.",
        examples=["5m"],
    ),
]
Type = Annotated[Name | None, Query(alias="type", description="Not for a tenant.")]
Queue = Annotated[Name | None, Query(description="Not for a tenant.")]


@router.get(
    "/_api/statistics",
    operation_id="get_statistics",
    response_model=JobStatisticsOut,
    responses=problems("invalid", "forbidden"),
)
async def get_statistics(
    caller: User,
    since: Since = None,
    until: Until = None,
    step: Step = None,
    job_type: Type = None,
    queue: Queue = None,
    tenant_id: TenantId | None = None,
) -> Any:
    """Return outcomes and percentiles by step.

    Built-in jobs are left out unless `queue=forge` or their type asks for them. A tenant gets its
    outcomes, without percentiles.
    """
    filters = _filters(caller, since, until, job_type, queue, tenant_id)
    return asdict(await read_series(caller.run, **filters | {"step": step}))


@router.get(
    "/_api/statistics/by_type",
    operation_id="get_statistics_by_type",
    response_model=StatisticsByTypeOut,
    responses=problems("invalid", "forbidden"),
)
async def get_statistics_by_type(
    caller: User,
    since: Since = None,
    until: Until = None,
    job_type: Type = None,
    queue: Queue = None,
    group: Annotated[Group, Query(description="Whose totals are added up.")] = "type_and_queue",
    tenant_id: TenantId | None = None,
) -> Any:
    """Return the totals of each job type and queue; a tenant gets one total of its outcomes."""
    filters = _filters(caller, since, until, job_type, queue, tenant_id)
    return asdict(await read_by_type(caller.run, group, **filters))


@router.get("/_api/backlog", operation_id="get_backlog", response_model=Items[BacklogItemOut])
async def get_backlog(caller: OperatingStaff) -> Any:
    """Return the jobs that wait and run now, by type, queue and capability."""
    return {"items": [_shown(item) for item in await read_backlog(caller.run)]}


def _filters(
    caller: Caller,
    since: datetime | None,
    until: datetime | None,
    job_type: str | None,
    queue: str | None,
    tenant_id: int | None,
) -> StatisticsFilters:
    return {
        "since": since,
        "until": until,
        "job_type": job_type,
        "queue": queue,
        "tenant_id": caller.tenant_for(tenant_id),
    }


def _shown(item: BacklogItem) -> dict[str, Any]:
    shown = asdict(item)
    precision = "exact" if shown.pop("is_exact") else "at_least"
    return shown | {"ready": {"count": item.ready, "precision": precision}}
