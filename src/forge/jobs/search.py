"""Searching jobs: pages of those that match, each from a bounded number of rows."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from forge.core.errors import InvalidValue
from forge.core.job import JobRecord
from forge.core.job_content import JobContent
from forge.core.job_filter import InputValue, JobFilter
from forge.core.lifecycle import FINAL, Status
from forge.core.sensitive.shown import shown_job
from forge.definitions.catalog import Catalog, RunStatement
from forge.store import listing
from forge.store.listing import PageRange, PageUsage
from forge.store.statement import Rows, Statement

T = TypeVar("T")
LIVE = frozenset(Status) - FINAL
# Jobs on one page.
MAX_LISTED = 10_000
# Rows per statement, after the first.
MAX_ROWS_PER_STATEMENT = 1000
# Rows that one page of a search in the content redacts and compares.
MAX_ROWS_SEARCHED = 2000

PageStatement = Callable[[JobFilter, PageRange], Statement[Rows]]


class CallOffLoop(Protocol):
    """Calls a function that handles `size` bytes of JSON, in a thread if that is much."""

    def __call__(self, size: int, act: Callable[..., T], /, *args: Any) -> Awaitable[T]: ...


class JobReader(NamedTuple):
    """How a search reads: as its caller, over all tenants for aggregates, and off the loop."""

    run: RunStatement
    run_over_all: RunStatement
    catalog: Catalog
    call: CallOffLoop


class JobSearch(NamedTuple):
    """What is searched for, and what is returned of it."""

    filter: JobFilter
    # A text in the input, the last error or the progress message, as shown.
    text: str | None = None
    inputs: Sequence[InputValue] = ()
    # Without input, output, checkpoint and meta.
    is_summary: bool = False
    # As stored, for the application itself, instead of with secrets redacted.
    is_stored: bool = False

    @property
    def is_in_content(self) -> bool:
        """Whether redacted content is compared, too."""
        return not self.content.is_any

    @property
    def content(self) -> JobContent:
        return JobContent(self.text, tuple(self.inputs))


class FoundJobs(NamedTuple):
    """A page of jobs, newest first."""

    items: list[JobRecord]
    # The id to continue after; None at the end.
    next_cursor: UUID | None
    stopped_early: bool
    # Bytes of JSON that were read.
    size: int


async def find_jobs(
    reader: JobReader, wanted: JobSearch, limit: int, cursor: UUID | None = None
) -> FoundJobs:
    """Return the page of jobs after a cursor."""
    statuses = wanted.filter.statuses
    if statuses == ():
        return FoundJobs([], None, False, 0)
    found = await _gather(reader, listing.page, wanted, limit, cursor)
    is_of_live = statuses is not None and LIVE.issuperset(statuses)
    if found.stopped_early and not wanted.is_in_content and is_of_live:
        live = await reader.run_over_all(listing.count_live(listing.WINDOW + 1))
        if sum(row["count"] for row in live) <= listing.WINDOW:
            return await _gather(reader, listing.page_live, wanted, limit, cursor)
    return found


def check_limit(limit: int) -> int:
    """Refuse the size of a page that is none."""
    if not 1 <= limit <= MAX_LISTED:
        raise InvalidValue(f"limit must be from 1 to {MAX_LISTED:,}, not {limit!r}")
    return limit


async def call_on_loop(size: int, act: Callable[..., T], /, *args: Any) -> T:
    """Call a function where no other request waits for the loop."""
    return act(*args)


async def _gather(
    reader: JobReader,
    page_statement: PageStatement,
    wanted: JobSearch,
    limit: int,
    cursor: UUID | None,
) -> FoundJobs:
    """Read until the page is full, the limit of rows or time is reached, or no rows are left.

    Content is compared with redacted rows, never in the database: that would search stored secrets
    too, and reveal them by the time it takes or the number of rows it returns.
    """
    jobs: list[JobRecord] = []
    job_filter = wanted.filter
    before = job_filter.end_id if cursor is None else min(cursor, job_filter.end_id)
    count = min(limit + 1, MAX_ROWS_SEARCHED) if wanted.is_in_content else limit + 1
    is_summary = wanted.is_summary and not wanted.is_in_content
    used, began = PageUsage(), time.monotonic()
    searched = size = 0
    while True:
        part = PageRange(before, job_filter.first_id, count, is_summary, used)
        found = await reader.run(page_statement(job_filter, part))
        allowed = await reader.catalog.sensitive_allowed_by_type(row["job_type"] for row in found)
        read = partial(_read, wanted=wanted, allowed=allowed)
        read_jobs = await reader.call(sum(row["size"] for row in found), _each, read, found)
        for row, job in zip(found, read_jobs, strict=True):
            if len(jobs) == limit and (job is not None or row["is_stop"]):
                return FoundJobs(jobs, jobs[-1].id, False, size)
            if job is not None:
                jobs.append(job)
            searched += row["matches"]
            size += row["size"]
            if row["is_stop"] or size > listing.MAX_PAGE_BYTES:
                is_early = row["is_stop"] or wanted.is_in_content
                return FoundJobs(jobs, row["id"], is_early, size)
        if len(found) < count and not (found and found[-1]["is_full"]):
            return FoundJobs(jobs, None, False, size)
        seconds = time.monotonic() - began
        if searched >= MAX_ROWS_SEARCHED or seconds > listing.MAX_PAGE_SECONDS:
            return FoundJobs(jobs, found[-1]["id"], True, size)
        before = found[-1]["id"]
        used = PageUsage(used.rows + found[-1]["place"], seconds)
        count = min(count * 2, MAX_ROWS_PER_STATEMENT, MAX_ROWS_SEARCHED - searched)


def _each(
    read: Callable[[Mapping[str, Any]], JobRecord | None], found: Rows
) -> list[JobRecord | None]:
    return [read(row) for row in found]


def _read(
    row: Mapping[str, Any], wanted: JobSearch, allowed: Mapping[str, Sequence[str]]
) -> JobRecord | None:
    """Return a job; None if it does not match."""
    if not row["matches"]:
        return None
    stored = JobRecord.from_row(row)
    shown = shown_job(stored, allowed[stored.job_type])
    if not wanted.content.matches(shown):
        return None
    return stored if wanted.is_stored else shown
