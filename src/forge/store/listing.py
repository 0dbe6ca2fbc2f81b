"""Pages and counts of forge_jobs, each from a bounded number of rows."""

from dataclasses import astuple
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.job_filter import JobFilter
from forge.core.lifecycle import FINAL, Status
from forge.store.statement import Rows, Statement, load, load_around, only, rows

# Limits of rows and seconds per page; a page that reaches one is returned incomplete.
WINDOW = 20_000
MAX_PAGE_SECONDS = 2.0
# The limit of JSON per page; a page that reaches it is cut short.
MAX_PAGE_BYTES = 1_000_000
# The statuses with an index of their own.
ENDED = FINAL - {Status.COMPLETED}
# The fields with an index of their own, the most selective first, and the statement that reads it.
INDEXED = {
    "parent_id": "jobs/page_of_parent",
    "retry_of": "jobs/page_of_original",
    "idempotency_key": "jobs/page_of_key",
    "correlation_id": "jobs/page_of_correlation",
    "tenant_id": "jobs/page_of_tenant",
}
RELATED = ("parent_id", "retry_of", "idempotency_key", "correlation_id")
# The statements whose first parameters are the fields of JobFilter.
FILTERED = (
    "jobs/page",
    "jobs/page_ended",
    "jobs/page_live",
    *INDEXED.values(),
    "jobs/count_matching",
    "jobs/count_matching_of_tenant",
    "jobs/count_related",
    "bulk/choose",
    "bulk/choose_live",
    "bulk/matching",
    "bulk/lock",
)


class PageUsage(NamedTuple):
    """The rows and seconds that a page has already used."""

    rows: int = 0
    seconds: float = 0.0


class PageRange(NamedTuple):
    """Which jobs a statement returns: ids from `first` to before `before`, at most `limit`."""

    before: UUID
    first: UUID
    limit: int
    # Without input, output, checkpoint and meta.
    is_summary: bool = False
    used: PageUsage = PageUsage()


def page(filter: JobFilter, part: PageRange) -> Statement[Rows]:
    """List jobs by the statement that reads the fewest rows for the filter."""
    name = _way_to_list(filter)
    return Statement(load(name), _args(name, filter, part), rows)


def page_live(filter: JobFilter, part: PageRange) -> Statement[Rows]:
    """List jobs that are not final, if there are at most WINDOW of them."""
    return Statement(load("jobs/page_live"), _args("jobs/page_live", filter, part), rows)


class Fingerprint(NamedTuple):
    """A hash that differs when a list has changed; None for an empty list."""

    fingerprint: str | None
    stopped_early: bool


def fingerprint(filter: JobFilter, limit: int) -> Statement[Fingerprint]:
    """Hash the newest jobs that match."""
    return _fingerprint(_way_to_list(filter), filter, limit)


def fingerprint_live(filter: JobFilter, limit: int) -> Statement[Fingerprint]:
    """Hash the newest jobs that match, if there are at most WINDOW that are not final."""
    return _fingerprint("jobs/page_live", filter, limit)


def _fingerprint(name: str, filter: JobFilter, limit: int) -> Statement[Fingerprint]:
    args = _args(name, filter, PageRange(filter.end_id, filter.first_id, limit, is_summary=True))
    text = load_around("jobs/fingerprint", name)
    return Statement(text, args, lambda found: Fingerprint(**only(found)))


class Matching(NamedTuple):
    """How many jobs match, by status and type, and how many were read."""

    by_status_and_type: dict[tuple[str, str], int]
    looked_at: int

    @property
    def total(self) -> int:
        return sum(self.by_status_and_type.values())


def count_matching(filter: JobFilter, look_at: int) -> Statement[Matching]:
    """Count the newest jobs that match."""
    name = "jobs/count_matching"
    if any(getattr(filter, field) is not None for field in RELATED):
        name = "jobs/count_related"
    elif filter.tenant_id is not None:
        name = "jobs/count_matching_of_tenant"
    args = (*values_of_filter(filter), filter.end_id, filter.first_id, look_at)
    return Statement(load(name), args, _matching)


def count_newest(look_at: int, tenant: int | None) -> Statement[Rows]:
    if tenant is None:
        return Statement(load("jobs/count_newest"), (look_at,), rows)
    return Statement(load("jobs/count_newest_of_tenant"), (look_at, tenant), rows)


def count_live(look_at: int) -> Statement[Rows]:
    return Statement(load("jobs/count_live"), (look_at,), rows)


def count_ended(look_at: int) -> Statement[Rows]:
    return Statement(load("jobs/count_ended"), (look_at,), rows)


def count_sample(blocks: int) -> Statement[Rows]:
    return Statement(load("jobs/count_sample"), (float(blocks),), rows)


def values_of_filter(filter: JobFilter) -> tuple[Any, ...]:
    """Return the first parameters of a statement that filters jobs."""
    statuses, *others = astuple(filter)
    return (None if statuses is None else [str(status) for status in statuses], *others)


def _way_to_list(filter: JobFilter) -> str:
    for field, name in INDEXED.items():
        if getattr(filter, field) is not None:
            return name
    is_ended = filter.statuses is not None and ENDED.issuperset(filter.statuses)
    return "jobs/page_ended" if is_ended else "jobs/page"


def _args(name: str, filter: JobFilter, part: PageRange) -> tuple[Any, ...]:
    # This statement reads as many rows of each status.
    parts = len(filter.statuses or ()) if name == "jobs/page_ended" else 1
    left = (max(WINDOW // parts, 1) - part.used.rows, part.limit, MAX_PAGE_BYTES)
    seconds = MAX_PAGE_SECONDS - part.used.seconds
    return (*values_of_filter(filter), part.before, part.first, *left, seconds, part.is_summary)


def _matching(found: Rows) -> Matching:
    counts = {(row["status"], row["job_type"]): row["count"] for row in found if row["count"]}
    return Matching(counts, sum(row["looked_at"] for row in found))
