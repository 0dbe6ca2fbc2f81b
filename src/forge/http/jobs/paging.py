"""Pages of jobs: the query, the cursor, and reading until a page is full."""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.job import JobRecord
from forge.core.lifecycle import FINAL, State, Status
from forge.core.new_job import parse_priority
from forge.core.sensitive.shown import shown_job
from forge.http.auth.access import Caller
from forge.http.jobs.shapes import JobOut, JobPage
from forge.http.off_loop import off_loop
from forge.http.problems.problem import Fault, invalid
from forge.store import listing
from forge.store.listing import UNUSED, WINDOW, JobFilter, PageUsage
from forge.store.statement import Rows, Statement

PageStatement = Callable[[JobFilter, int, PageUsage], Statement[Rows]]
NEWEST = UUID(int=2**128 - 1)
OLDEST = UUID(int=0)
ENDED = FINAL - {Status.COMPLETED}
LIVE = frozenset(Status) - FINAL
# Ids contain the time of the process that created them, which may differ from the database's.
CLOCK_SKEW = timedelta(minutes=1)
# Rows per statement, after the first.
MAX_ROWS_PER_STATEMENT = 1000
# Rows that one page of a text search redacts and compares.
MAX_ROWS_SEARCHED = 2000


class JobQuery(NamedTuple):
    """The filters of a request."""

    status: Status | None = None
    state: State | None = None
    type: str | None = None
    queue: str | None = None
    priority: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    q: str | None = None
    cursor: str | None = None
    category: str | None = None
    correlation_id: UUID | None = None
    error_class: str | None = None
    idempotency_key: str | None = None
    tenant_id: int | None = None


class JobSlice(NamedTuple):
    """Redacted jobs, and the id to continue after; None at the end."""

    jobs: list[JobOut]
    last: UUID | None
    # Bytes of JSON that were read.
    size: int
    stopped_early: bool = False


async def find_page(caller: Caller, query: JobQuery, limit: int) -> tuple[JobPage, int]:
    """Return a page of jobs, and its bytes of JSON."""
    statuses = _statuses(query)
    if statuses is not None and not statuses:
        return JobPage(items=[], next_cursor=None, stopped_early=False), 0
    job_filter = filter_of(query)
    tenant = caller.tenant_for(query.tenant_id)
    found = await gather(caller, _statement_for(tenant, statuses), job_filter, limit, query.q)
    if found.stopped_early and query.q is None and statuses is not None and set(statuses) <= LIVE:
        found = await _page_of_live(caller, tenant, job_filter, limit) or found
    cursor = None if found.last is None else write_cursor(found.last)
    page = JobPage(items=found.jobs, next_cursor=cursor, stopped_early=found.stopped_early)
    return page, found.size


def _statement_for(tenant: int | None, statuses: Collection[Status] | None) -> PageStatement:
    """Return the statement that reads the fewest rows for these jobs."""
    if tenant is not None:
        return partial(listing.page_of_tenant, tenant)
    if statuses is not None and ENDED.issuperset(statuses):
        return listing.page_ended
    return listing.page


async def _page_of_live(
    caller: Caller, tenant: int | None, job_filter: JobFilter, limit: int
) -> JobSlice | None:
    """Search all jobs that are not final, unless there are too many."""
    live = await caller.run_over_all(listing.count_live(WINDOW + 1))
    if sum(row["count"] for row in live) > WINDOW:
        return None
    return await gather(caller, partial(listing.page_live, tenant), job_filter, limit)


def _statuses(query: JobQuery) -> Collection[Status] | None:
    if query.status is None and query.state is None:
        return None
    return [
        status
        for status in Status
        if query.status in (None, status) and query.state in (None, status.state)
    ]


def filter_of(query: JobQuery) -> JobFilter:
    """Return the filter of the database for a query."""
    statuses = _statuses(query)
    before = NEWEST if query.cursor is None else read_cursor(query.cursor)
    oldest = OLDEST
    if query.until is not None:
        before = min(before, _id_at(query.until, CLOCK_SKEW))
    if query.since is not None:
        oldest = _id_at(query.since, -CLOCK_SKEW)
    return JobFilter(
        before=before,
        from_id=oldest,
        statuses=None if statuses is None else [str(status) for status in statuses],
        job_type=query.type,
        queue=query.queue,
        priority=None if query.priority is None else _priority(query.priority),
        since=query.since,
        until=query.until,
        category=query.category,
        correlation_id=query.correlation_id,
        error_class=query.error_class,
        idempotency_key=query.idempotency_key,
    )


def write_cursor(job_id: UUID) -> str:
    """Return an opaque cursor after a job."""
    return urlsafe_b64encode(job_id.bytes).rstrip(b"=").decode()


def read_cursor(text: str) -> UUID:
    """Parse a cursor, or raise a 422."""
    try:
        job_id = UUID(bytes=urlsafe_b64decode(f"{text}==".encode("ascii")))
    except ValueError:
        job_id = None
    if job_id is None or write_cursor(job_id) != text:
        fault = Fault(
            "query.cursor", "is not a next_cursor; leave it out to start from the beginning"
        )
        raise invalid([fault])
    return job_id


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _id_at(moment: datetime, skew: timedelta) -> UUID:
    """Return the smallest id of a given time."""
    milliseconds = (moment - _EPOCH + skew) // timedelta(milliseconds=1)
    return UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)


def _priority(text: str) -> int:
    return parse_priority(int(text) if text.isdigit() else text)


async def gather(
    caller: Caller,
    page_statement: PageStatement,
    job_filter: JobFilter,
    limit: int,
    text: str | None = None,
) -> JobSlice:
    """Read until the page is full, the limit of rows or time is reached, or no rows are left.

    The text is compared with redacted rows, never in the database: that would search stored
    secrets too, and reveal them by the time it takes or the number of rows it returns.
    """
    jobs: list[JobOut] = []
    count = limit + 1 if text is None else min(limit + 1, MAX_ROWS_SEARCHED)
    used, began = UNUSED, time.monotonic()
    searched = size = 0
    while True:
        found = await caller.run(page_statement(job_filter, count, used))
        allowed = await caller.app.catalog.sensitive_allowed_by_type(
            row["job_type"] for row in found
        )
        shown = await off_loop(sum(row["size"] for row in found), _all_shown, found, allowed, text)
        for row, job in zip(found, shown, strict=True):
            if len(jobs) == limit and (job is not None or row["is_stop"]):
                return JobSlice(jobs, jobs[-1].id, size)
            if job is not None:
                jobs.append(job)
            searched += row["matches"]
            size += row["size"]
            if row["is_stop"] or size > listing.MAX_PAGE_BYTES:
                return JobSlice(jobs, row["id"], size, row["is_stop"] or text is not None)
        if len(found) < count and not (found and found[-1]["is_full"]):
            return JobSlice(jobs, None, size)
        seconds = time.monotonic() - began
        if searched >= MAX_ROWS_SEARCHED or seconds > listing.MAX_PAGE_SECONDS:
            return JobSlice(jobs, found[-1]["id"], size, stopped_early=True)
        job_filter = job_filter._replace(before=found[-1]["id"])
        used = PageUsage(used.rows + found[-1]["place"], seconds)
        count = min(count * 2, MAX_ROWS_PER_STATEMENT, MAX_ROWS_SEARCHED - searched)


def _all_shown(
    found: Rows, allowed: Mapping[str, Sequence[str]], text: str | None
) -> list[JobOut | None]:
    return [
        _shown(row, allowed[row["job_type"]], text) if row["matches"] else None for row in found
    ]


def _shown(row: Mapping[str, Any], allowed: Sequence[str], text: str | None) -> JobOut | None:
    """Return a redacted job; None if it does not contain the text."""
    job = shown_job(JobRecord.from_row(row), allowed)
    return JobOut.of(job) if text is None or _contains(job, text) else None


def _contains(job: JobRecord, text: str) -> bool:
    shown = (json.dumps(job.input, ensure_ascii=False), job.last_error, job.progress_message)
    return any(part is not None and text.casefold() in part.casefold() for part in shown)
