"""Jobs: list, count, show one, list its attempts."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response

from forge.core.errors import UnknownJob
from forge.core.job import JobRecord
from forge.core.lifecycle import FINAL, OWNED, WAITING, Status
from forge.core.sensitive.shown import shown_attempt, shown_job
from forge.http.auth.access import Caller, User
from forge.http.fields import Items, Precision
from forge.http.jobs.filters import Filter, InputValues
from forge.http.jobs.paging import find_page, restrict, write_cursor
from forge.http.jobs.shapes import (
    AttemptOut,
    Count,
    CountsOut,
    JobOut,
    JobPage,
    JobSummary,
    SummaryPage,
    TypeCounts,
)
from forge.http.off_loop import answer_of, off_loop, size_of
from forge.http.problems.problem import problems
from forge.jobs.search import JobSearch
from forge.store import jobs, listing
from forge.store.statement import Rows

# Jobs that are counted exactly.
EXACT_LIMIT = 10_000
# Blocks of the table that are sampled to estimate the rest.
SAMPLE_BLOCKS = 500

Tally = Counter[tuple[str, str]]


async def counts(caller: Caller) -> CountsOut:
    """Count all jobs if there are few; else count live ones by index and estimate final ones."""
    newest = _tally(await caller.run(listing.count_newest(EXACT_LIMIT + 1, caller.tenant_id)))
    if newest.total() <= EXACT_LIMIT:
        return _uniform(newest, "exact")
    if caller.tenant_id is not None:
        return _uniform(newest, "at_least")
    live = _tally(await caller.run(listing.count_live(EXACT_LIMIT + 1)))
    ended = {
        row["status"]: row["count"]
        for row in await caller.run(listing.count_ended(EXACT_LIMIT + 1))
    }
    sample = _tally(await caller.run(listing.count_sample(SAMPLE_BLOCKS)))
    return CountsOut(
        by_status=_live(live) | _final(ended, sample), by_type=_types(live, sample, "estimate")
    )


def _uniform(seen: Tally, precision: Precision) -> CountsOut:
    """Return counts that all have the same precision."""
    by_status = {s: Count(count=_of(seen, {s}), precision=precision) for s in Status}
    return CountsOut(by_status=by_status, by_type=_types(seen, seen, precision))


def _live(live: Tally) -> dict[Status, Count]:
    found: dict[Status, Count] = {}
    for group in (WAITING, OWNED):
        precision: Precision = "exact" if _of(live, group) <= EXACT_LIMIT else "at_least"
        found |= {s: Count(count=_of(live, {s}), precision=precision) for s in group}
    return found


def _final(ended: dict[str, int], sample: Tally) -> dict[Status, Count]:
    found = {}
    for status in FINAL:
        counted, guessed = ended.get(status), _of(sample, {status})
        if counted is not None and counted <= EXACT_LIMIT:
            found[status] = Count(count=counted, precision="exact")
        else:
            found[status] = Count(count=max(counted or 0, guessed), precision="estimate")
    return found


def _types(live: Tally, all: Tally, precision: Precision) -> dict[str, TypeCounts]:
    """Count by type; live jobs are exact up to the limit."""
    is_capped = max(_of(live, WAITING), _of(live, OWNED)) > EXACT_LIMIT
    of_live: Precision = precision if live is all else "at_least" if is_capped else "exact"
    found = {}
    for name in sorted({job_type for _, job_type in (*live, *all)}):
        alive = sum(n for (s, t), n in live.items() if t == name and s not in FINAL)
        known = sum(n for (_, t), n in all.items() if t == name)
        found[name] = TypeCounts(
            live=Count(count=alive, precision=of_live),
            all=Count(count=max(alive, known), precision=precision),
        )
    return found


def _of(tally: Tally, statuses: Collection[str]) -> int:
    return sum(count for (status, _), count in tally.items() if status in statuses)


def _tally(found: Rows) -> Tally:
    return Counter({(row["status"], row["job_type"]): row["count"] for row in found})


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
async def count_jobs(caller: User, job_filter: Filter) -> CountsOut:
    """Count jobs by status and by type, at a cost that does not grow with the table.

    With a filter, at most the newest 10,000 jobs that the index of the filter leads to are counted.
    """
    if job_filter.is_empty:
        return await counts(caller)
    wanted = restrict(caller, job_filter)
    found = await caller.run(listing.count_matching(wanted, EXACT_LIMIT + 1))
    is_exact = found.looked_at <= EXACT_LIMIT
    return _uniform(Counter(found.by_status_and_type), "exact" if is_exact else "at_least")


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
