"""Jobs: list, count, show one, list its attempts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response

from forge.core.errors import UnknownJob
from forge.core.job import JobRecord
from forge.core.sensitive.shown import shown_attempt, shown_job
from forge.http.auth.access import Caller, User
from forge.http.fields import Items
from forge.http.jobs.filters import Filter, InputValues
from forge.http.jobs.paging import find_page, restrict, write_cursor
from forge.http.jobs.shapes import (
    AttemptOut,
    CountsOut,
    JobOut,
    JobPage,
    JobSummary,
    SummaryPage,
)
from forge.http.off_loop import answer_of, off_loop, size_of
from forge.http.problems.problem import problems
from forge.jobs.counts import count_all, count_filtered
from forge.jobs.search import JobSearch
from forge.store import jobs
from forge.store.statement import Rows

router = APIRouter(tags=["jobs"])


@router.get(
    "/_api/jobs",
    operation_id="list_jobs",
    response_model=JobPage | SummaryPage,
    responses=problems("invalid"),
)
async def list_jobs(
    caller: User,
    job_filter: Filter,
    inputs: InputValues,
    q: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=200,
            description="Text in the input, the last error or the progress message, as shown.",
        ),
    ] = None,
    view: Annotated[
        Literal["full", "summary"],
        Query(description="`summary` leaves out `input`, `output`, `checkpoint` and `meta`."),
    ] = "full",
    cursor: Annotated[str | None, Query(description="The `next_cursor` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """List jobs, newest first.

    A page reads a bounded number of rows: if few of them match, it may end before `limit` with
    `stopped_early`, and `next_cursor` continues from there. With `q` or `input.…` it compares at
    most 2,000 jobs.
    """
    is_summary = view == "summary"
    wanted = JobSearch(restrict(caller, job_filter), q, inputs, is_summary)
    found = await find_page(caller, wanted, limit, cursor)
    next_cursor = None if found.next_cursor is None else write_cursor(found.next_cursor)
    page: JobPage | SummaryPage
    if is_summary:
        summaries = [JobSummary.of(job) for job in found.items]
        page = SummaryPage(
            items=summaries, next_cursor=next_cursor, stopped_early=found.stopped_early
        )
    else:
        jobs = await off_loop(found.size, _jobs_out, found.items)
        page = JobPage(items=jobs, next_cursor=next_cursor, stopped_early=found.stopped_early)
    return await answer_of(found.size, page)


@router.get(
    "/_api/jobs/counts",
    operation_id="count_jobs",
    response_model=CountsOut,
    responses=problems("invalid"),
)
async def count_jobs(caller: User, job_filter: Filter) -> Any:
    """Count jobs by status and by type, at a cost that does not grow with the table.

    With a filter, at most the newest 10,000 jobs that the index of the filter leads to are counted.
    """
    if job_filter.is_empty:
        return asdict(await count_all(caller.run, caller.tenant_id))
    return asdict(await count_filtered(caller.run, restrict(caller, job_filter)))


@router.get(
    "/_api/jobs/{job_id}",
    operation_id="get_job",
    response_model=JobOut,
    responses=problems("not_found"),
)
async def get_job(job_id: UUID, caller: User) -> Response:
    """Return a job."""
    row = await row_of(caller, job_id)
    allowed = await caller.app.catalog.sensitive_allowed(row["job_type"])
    size = size_of(row)
    return await answer_of(size, await off_loop(size, _shown, row, allowed))


@router.get(
    "/_api/jobs/{job_id}/attempts",
    operation_id="list_attempts",
    response_model=Items[AttemptOut],
    responses=problems("not_found"),
)
async def list_attempts(job_id: UUID, caller: User) -> Any:
    """List the failed attempts of a job, oldest first."""
    row = await row_of(caller, job_id)
    allowed = await caller.app.catalog.sensitive_allowed(row["job_type"])
    found = await caller.run(jobs.attempts(job_id))
    return {"items": await off_loop(size_of(row), _shown_attempts, row, found, allowed)}


def _shown(row: Mapping[str, Any], allowed: Sequence[str]) -> JobOut:
    return JobOut.of(shown_job(JobRecord.from_row(row), allowed))


def _jobs_out(found: Sequence[JobRecord]) -> list[JobOut]:
    return [JobOut.of(job) for job in found]


def _shown_attempts(
    job: Mapping[str, Any], found: Rows, allowed: Sequence[str]
) -> list[dict[str, Any]]:
    record = JobRecord.from_row(job)
    return [shown_attempt(row, record.input, allowed) for row in found]


async def row_of(caller: Caller, job_id: UUID) -> Mapping[str, Any]:
    """Return the row of a job of the caller's tenant, or raise UnknownJob."""
    found = await caller.run(jobs.get([job_id]))
    if not found or caller.tenant_id not in (None, found[0]["tenant_id"]):
        raise UnknownJob.of(job_id)
    return found[0]
