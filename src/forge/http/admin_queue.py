"""The queue for whoever looks after it: lists and statistics of jobs."""

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from forge.core.dead_letter import Statistics
from forge.core.lifecycle import Status
from forge.core.retry import ErrorClass
from forge.http.access import Caller, Manager
from forge.http.admin_shapes import Category, QueueJob, QueuePage, QueueStatistics, Tenant
from forge.http.described import problems
from forge.http.jobs_read import PRIORITIES
from forge.http.paging import Asked, find_page, wanted_by
from forge.http.problem import Fault, invalid
from forge.http.shapes import Name, Precision
from forge.store import listing, statistics
from forge.store.listing import Wanted
from forge.store.statistics import MOST_COUNTED

router = APIRouter(tags=["admin"])


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
    tenant_id: Tenant | None = None,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> QueuePage:
    """List jobs without what they hold, the newest first."""
    if job_type and type and job_type != type:
        fault = Fault("query.type", "differs from job_type; leave one of them out")
        raise invalid([fault])
    asked = Asked(
        status=status,
        type=job_type or type,
        priority=priority,
        category=category,
        correlation_id=correlation_id,
        queue=queue,
        error_class=error_class,
        idempotency_key=idempotency_key,
        tenant_id=caller.tenant_meant(tenant_id),
        cursor=cursor,
    )
    page, _ = await find_page(caller, asked, limit)
    count, precision = await _count(caller, wanted_by(asked), asked.tenant_id)
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
    """Count jobs by status, category, type and error class, at a cost that does not grow."""
    counts, is_exact = await statistics.count_jobs(caller.run, caller.tenant_id)
    shown = asdict(counts)
    return QueueStatistics(
        total_count=shown.pop("total"), **shown, precision=_precision(caller, is_exact)
    )


async def _count(caller: Caller, wanted: Wanted, tenant: int | None) -> tuple[int, Precision]:
    """Count what matches one by one where there are few; else as well as it can be known."""
    looking = listing.count_matching(wanted, MOST_COUNTED + 1, tenant)
    found = await caller.run(looking)
    if found.looked_at <= MOST_COUNTED:
        return found.matching, "exact"
    if tenant is None:
        estimate = _of(await statistics.estimate_jobs(caller.run), wanted)
        if estimate is not None and estimate >= found.matching:
            return estimate, "estimate"
    return found.matching, "at_least"


def _of(counts: Statistics, wanted: Wanted) -> int | None:
    """Return how many match, where no more than one thing is asked for that is counted."""
    uncounted = (wanted.priority, wanted.correlation_id, wanted.queue, wanted.idempotency_key)
    if any(value is not None for value in uncounted):
        return None
    asked = [
        counted.get(name, 0)
        for name, counted in (
            (wanted.statuses[0] if wanted.statuses else None, counts.by_status),
            (wanted.category, counts.by_category),
            (wanted.job_type, counts.by_type),
            (wanted.error_class, counts.by_error_class),
        )
        if name is not None
    ]
    if not asked:
        return counts.total
    return asked[0] if len(asked) == 1 else None


def _precision(caller: Caller, is_exact: bool) -> Precision:
    if is_exact:
        return "exact"
    return "estimate" if caller.tenant_id is None else "at_least"
