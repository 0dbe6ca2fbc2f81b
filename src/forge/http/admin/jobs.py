"""The admin API for jobs: list and statistics."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from forge.core.job import JobRecord
from forge.core.job_counts import Precision
from forge.core.lifecycle import State, Status
from forge.http.auth.access import Caller, Manager
from forge.http.dead_letters.shapes import StatisticsOut
from forge.http.fields import NEXT_CURSOR, Name, PriorityValue
from forge.http.jobs.filters import Filter
from forge.http.jobs.paging import find_page, restrict, write_cursor
from forge.http.problems.problem import Fault, invalid, problems
from forge.jobs.counts import count_total
from forge.jobs.search import JobSearch
from forge.store.queue_statistics import count_jobs

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
    def of(cls, job: JobRecord) -> "QueueJob":
        """Convert a redacted job to the field names of the admin API."""
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
    job_filter: Filter,
    job_type: Annotated[Name | None, Query(description="The same as `type`.")] = None,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> QueuePage:
    """List jobs without input and output, newest first."""
    if job_type is not None:
        if job_filter.job_type not in (None, job_type):
            fault = Fault("query.type", "differs from job_type; leave one of them out")
            raise invalid([fault])
        job_filter = replace(job_filter, job_type=job_type)
    wanted = restrict(caller, job_filter)
    found = await find_page(caller, JobSearch(wanted, is_summary=True), limit, cursor)
    counted = await count_total(caller.run, wanted)
    return QueuePage(
        jobs=[QueueJob.of(job) for job in found.items],
        total_count=max(counted.count, len(found.items)),
        total_count_precision=counted.precision,
        next_cursor=None if found.next_cursor is None else write_cursor(found.next_cursor),
        stopped_early=found.stopped_early,
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


def _precision(caller: Caller, is_exact: bool) -> Precision:
    if is_exact:
        return "exact"
    return "estimate" if caller.tenant_id is None else "at_least"
