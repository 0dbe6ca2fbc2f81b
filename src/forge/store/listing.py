"""Pages and counts of forge_jobs, each from a bounded number of rows."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from forge.store.statement import Rows, Statement, load, rows

# Limits of rows and seconds per page; a page that reaches one is returned incomplete.
WINDOW = 20_000
MAX_PAGE_SECONDS = 2.0
# The limit of JSON per page; a page that reaches it is cut short.
MAX_PAGE_BYTES = 1_000_000


class JobFilter(NamedTuple):
    """The conditions that jobs must meet; None means any."""

    before: UUID
    from_id: UUID
    statuses: Sequence[str] | None = None
    job_type: str | None = None
    queue: str | None = None
    priority: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    category: str | None = None
    correlation_id: UUID | None = None
    error_class: str | None = None
    idempotency_key: str | None = None


class PageUsage(NamedTuple):
    """The rows and seconds that a page has already used."""

    rows: int = 0
    seconds: float = 0.0


UNUSED = PageUsage()


def page(filter: JobFilter, limit: int, used: PageUsage = UNUSED) -> Statement[Rows]:
    return Statement(load("jobs/page"), _args(filter, limit, used), rows)


def page_of_tenant(
    tenant: int, filter: JobFilter, limit: int, used: PageUsage = UNUSED
) -> Statement[Rows]:
    return Statement(load("jobs/page_of_tenant"), (*_args(filter, limit, used), tenant), rows)


def page_ended(filter: JobFilter, limit: int, used: PageUsage = UNUSED) -> Statement[Rows]:
    """List jobs that are failed, dead_letter or cancelled, which have their own index."""
    return Statement(load("jobs/page_ended"), _args(filter, limit, used), rows)


def page_live(
    tenant: int | None, filter: JobFilter, limit: int, used: PageUsage = UNUSED
) -> Statement[Rows]:
    """List jobs that are not final, if there are at most WINDOW of them."""
    *args, _seconds = _args(filter, limit, used)
    return Statement(load("jobs/page_live"), (*args, tenant), rows)


class Matching(NamedTuple):
    """How many jobs match, and how many were read."""

    matching: int
    looked_at: int


def count_matching(filter: JobFilter, look_at: int, tenant: int | None) -> Statement[Matching]:
    """Count jobs by their attributes; conditions on time and content are ignored."""
    what = (filter.job_type, filter.priority, filter.category, filter.correlation_id)
    which = (filter.queue, filter.error_class, filter.idempotency_key)
    args: tuple[Any, ...] = (look_at, filter.statuses, *what, *which)
    if tenant is None:
        return Statement(load("jobs/count_matching"), args, _matching)
    return Statement(load("jobs/count_matching_of_tenant"), (*args, tenant), _matching)


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


def _args(filter: JobFilter, limit: int, used: PageUsage) -> tuple[Any, ...]:
    return (*filter, WINDOW - used.rows, limit, MAX_PAGE_BYTES, MAX_PAGE_SECONDS - used.seconds)


def _matching(found: Rows) -> Matching:
    return Matching(*found[0].values())
