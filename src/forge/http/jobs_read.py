"""Jobs as they stand: one, its attempts, pages of them, and how many there are."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime

from forge.allowances import allowance
from forge.core.errors import UnknownJob
from forge.core.lifecycle import State, Status
from forge.core.record import JobRecord
from forge.core.shown import shown_attempt, shown_job
from forge.http.access import Caller, User
from forge.http.counting import counts
from forge.http.described import problems
from forge.http.off_loop import answer_of, off_loop, size_of
from forge.http.paging import Asked, find_page
from forge.http.shapes import AttemptOut, CountsOut, Items, JobOut, JobPage, Name
from forge.store import jobs
from forge.store.statement import Rows

router = APIRouter(tags=["jobs"])
PRIORITIES = "^(?i:critical|high|normal|low|background|100|75|50|25|0)$"


@router.get(
    "/_api/jobs", operation_id="list_jobs", response_model=JobPage, responses=problems("invalid")
)
async def list_jobs(
    caller: User,
    status: Status | None = None,
    state: State | None = None,
    type: Annotated[Name | None, Query(description="The job type.")] = None,
    queue: Name | None = None,
    priority: Annotated[
        str | None, Query(description="By name or value.", pattern=PRIORITIES)
    ] = None,
    since: Annotated[AwareDatetime | None, Query(description="Created at or after.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Created before.")] = None,
    q: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=200,
            description="A text in the input, the last error or the progress message, as shown.",
        ),
    ] = None,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of a page.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """List jobs, the newest first.

    A page looks at a bounded number of rows: where few of them match, it may end before `limit`
    with `stopped_early`, and `next_cursor` goes on from there. With `q` it compares at most 2,000
    jobs.
    """
    asked = Asked(status, state, type, queue, priority, since, until, q, cursor)
    page, size = await find_page(caller, asked, limit)
    return await answer_of(size, page)


@router.get("/_api/jobs/counts", operation_id="count_jobs", response_model=CountsOut)
async def count_jobs(caller: User) -> CountsOut:
    """Count jobs by status and by type, at a cost that does not grow with the table."""
    return await counts(caller)


@router.get(
    "/_api/jobs/{job_id}",
    operation_id="get_job",
    response_model=JobOut,
    responses=problems("not_found"),
)
async def get_job(job_id: UUID, caller: User) -> Response:
    """Return a job as it stands now."""
    row = await row_of(caller, job_id)
    allowed = await allowance(caller.app, row["job_type"])
    size = size_of(row)
    return await answer_of(size, await off_loop(size, _shown, row, allowed))


@router.get(
    "/_api/jobs/{job_id}/attempts",
    operation_id="list_attempts",
    response_model=Items[AttemptOut],
    responses=problems("not_found"),
)
async def list_attempts(job_id: UUID, caller: User) -> Any:
    """List the attempts of a job that did not succeed, the first one first."""
    row = await row_of(caller, job_id)
    allowed = await allowance(caller.app, row["job_type"])
    found = await caller.run(jobs.attempts(job_id))
    return {"items": await off_loop(size_of(row), _shown_attempts, row, found, allowed)}


def _shown(row: Mapping[str, Any], allowed: Sequence[str]) -> JobOut:
    return JobOut.of(shown_job(JobRecord.from_row(row), allowed))


def _shown_attempts(
    job: Mapping[str, Any], found: Rows, allowed: Sequence[str]
) -> list[dict[str, Any]]:
    record = JobRecord.from_row(job)
    return [shown_attempt(row, record.input, allowed) for row in found]


async def row_of(caller: Caller, job_id: UUID) -> Mapping[str, Any]:
    """Return the row of a job that the caller may see."""
    found = await caller.run(jobs.get([job_id]))
    if not found or caller.tenant_id not in (None, found[0]["tenant_id"]):
        raise UnknownJob.of(job_id)
    return found[0]
