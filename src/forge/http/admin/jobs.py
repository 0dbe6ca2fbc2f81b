"""The admin API for jobs: list and statistics."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from forge.core.dead_letter import Statistics
from forge.core.lifecycle import State, Status
from forge.core.payload_rules import Category
from forge.core.retry import ErrorClass
from forge.http.auth.access import Caller, Manager
from forge.http.dead_letters.shapes import StatisticsOut
from forge.http.fields import NEXT_CURSOR, Name, Precision, PriorityValue, TenantId
from forge.http.jobs.paging import JobQuery, filter_of, find_page
from forge.http.jobs.read import PRIORITIES
from forge.http.jobs.shapes import JobOut
from forge.http.problems.problem import Fault, invalid, problems
from forge.store import listing
from forge.store.listing import JobFilter
from forge.store.queue_statistics import MAX_COUNTED, count_jobs, estimate_jobs

router = APIRouter(tags=["admin"])


class QueueJob(BaseModel):
    """A job without its input and output."""

    job_id: UUID
    category: str | None
    job_type: str
    status: Status
    state: State
    priority: PriorityValue
    queue: str
    tenant_id: int | None
    idempotency_key: str | None
    correlation_id: UUID | None
    payload_version: str
    error_class: str | None
    error_message: str | None = Field(description="The first 500 characters.")
    attempt_count: int
    max_attempts: int
    worker_id: UUID | None
    scheduled_at: datetime
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    cancelled_at: datetime | None

    @classmethod
    def of(cls, job: JobOut) -> "QueueJob":
        """Convert a job to the field names of the admin API."""
        shown = {name: getattr(job, name) for name in cls.model_fields if hasattr(job, name)}
        return cls(**shown, job_id=job.id, attempt_count=job.attempts, error_message=job.last_error)


class QueuePage(BaseModel):
    """A page of jobs, newest first."""

    jobs: list[QueueJob]
    total_count: int = Field(description="Number of matches on all pages.")
    total_count_precision: Precision = Field(
        description="`at_least`: among the newest 20,000 jobs."
    )
    next_cursor: str | None = Field(description=NEXT_CURSOR)
    stopped_early: bool = Field(
        description="Whether the search stopped at its limit of rows; `next_cursor` continues it."
    )


class QueueStatistics(StatisticsOut):
    """Counts of jobs."""

    precision: Precision = Field(
        description="`exact` up to 20,000 jobs. Above that an `estimate` for operators; for "
        "tenants the count of the newest 20,000, which is `at_least`."
    )


@router.get(
    "/api/jobs/admin/queue/",
    operation_id="admin_list_queue",
    response_model=QueuePage,
    responses=problems("invalid"),
)
async def list_queue(
    caller: Manager,
    status: Status | None = None,
    category: Category | None = None,
    job_type: Name | None = None,
    type: Annotated[Name | None, Query(description="The same as `job_type`.")] = None,
    priority: Annotated[
        str | None, Query(description="By name or value.", pattern=PRIORITIES)
    ] = None,
    correlation_id: UUID | None = None,
    queue: Name | None = None,
    error_class: ErrorClass | None = None,
    idempotency_key: Name | None = None,
    tenant_id: TenantId | None = None,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> QueuePage:
    """List jobs without input and output, newest first."""
    if job_type and type and job_type != type:
        fault = Fault("query.type", "differs from job_type; leave one of them out")
        raise invalid([fault])
    query = JobQuery(
        status=status,
        type=job_type or type,
        priority=priority,
        category=category,
        correlation_id=correlation_id,
        queue=queue,
        error_class=error_class,
        idempotency_key=idempotency_key,
        tenant_id=caller.tenant_for(tenant_id),
        cursor=cursor,
    )
    page, _ = await find_page(caller, query, limit)
    count, precision = await _count(caller, filter_of(query), query.tenant_id)
    return QueuePage(
        jobs=[QueueJob.of(job) for job in page.items],
        total_count=max(count, len(page.items)),
        total_count_precision=precision,
        next_cursor=page.next_cursor,
        stopped_early=page.stopped_early,
    )


@router.get(
    "/api/jobs/admin/queue/statistics/",
    operation_id="admin_queue_statistics",
    response_model=QueueStatistics,
)
async def queue_statistics(caller: Manager) -> QueueStatistics:
    """Count jobs by status, category, type and error class, at constant cost."""
    counts, is_exact = await count_jobs(caller.run, caller.tenant_id)
    shown = asdict(counts)
    return QueueStatistics(
        total_count=shown.pop("total"), **shown, precision=_precision(caller, is_exact)
    )


async def _count(
    caller: Caller, job_filter: JobFilter, tenant: int | None
) -> tuple[int, Precision]:
    """Count the matches exactly if there are few, else estimate them."""
    found = await caller.run(listing.count_matching(job_filter, MAX_COUNTED + 1, tenant))
    if found.looked_at <= MAX_COUNTED:
        return found.matching, "exact"
    if tenant is None:
        estimate = _estimate(await estimate_jobs(caller.run), job_filter)
        if estimate is not None and estimate >= found.matching:
            return estimate, "estimate"
    return found.matching, "at_least"


def _estimate(counts: Statistics, job_filter: JobFilter) -> int | None:
    """Return the number of matches if the filter has at most one counted field."""
    uncounted = (
        job_filter.priority,
        job_filter.correlation_id,
        job_filter.queue,
        job_filter.idempotency_key,
    )
    if any(value is not None for value in uncounted):
        return None
    matching = [
        counted.get(name, 0)
        for name, counted in (
            (job_filter.statuses[0] if job_filter.statuses else None, counts.by_status),
            (job_filter.category, counts.by_category),
            (job_filter.job_type, counts.by_type),
            (job_filter.error_class, counts.by_error_class),
        )
        if name is not None
    ]
    if not matching:
        return counts.total
    return matching[0] if len(matching) == 1 else None


def _precision(caller: Caller, is_exact: bool) -> Precision:
    if is_exact:
        return "exact"
    return "estimate" if caller.tenant_id is None else "at_least"
