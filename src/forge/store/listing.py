"""Pages of forge_jobs and counts of it: each looks at a bounded number of rows."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from forge.store.statement import Rows, Statement, load, rows

# How many rows a page may look at, and how long, before it pauses and says so.
WINDOW = 20_000
SECONDS = 2.0
# How much JSON a page may hold before it is cut short.
MOST_BYTES = 1_000_000


class Wanted(NamedTuple):
    """Which jobs are asked for; None means any."""

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


class Used(NamedTuple):
    """What a page has used already of the rows it may look at, and of its time."""

    rows: int = 0
    seconds: float = 0.0


UNUSED = Used()


def page(wanted: Wanted, limit: int, used: Used = UNUSED) -> Statement[Rows]:
    return Statement(load("jobs/page"), _args(wanted, limit, used), rows)


def page_of_tenant(tenant: int, wanted: Wanted, limit: int, used: Used = UNUSED) -> Statement[Rows]:
    return Statement(load("jobs/page_of_tenant"), (*_args(wanted, limit, used), tenant), rows)


def page_ended(wanted: Wanted, limit: int, used: Used = UNUSED) -> Statement[Rows]:
    """Pages of the statuses failed, dead_letter and cancelled, which have an index of their own."""
    return Statement(load("jobs/page_ended"), _args(wanted, limit, used), rows)


def page_live(
    tenant: int | None, wanted: Wanted, limit: int, used: Used = UNUSED
) -> Statement[Rows]:
    """Pages of jobs that are not final, where there are no more than WINDOW of them."""
    *args, _seconds = _args(wanted, limit, used)
    return Statement(load("jobs/page_live"), (*args, tenant), rows)


class Matching(NamedTuple):
    """How many jobs match, and how many were looked at."""

    matching: int
    looked_at: int


def count_matching(wanted: Wanted, look_at: int, tenant: int | None) -> Statement[Matching]:
    """Count by what jobs are; when they were made and what they hold is not looked at."""
    what = (wanted.job_type, wanted.priority, wanted.category, wanted.correlation_id)
    which = (wanted.queue, wanted.error_class, wanted.idempotency_key)
    args: tuple[Any, ...] = (look_at, wanted.statuses, *what, *which)
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


def _args(wanted: Wanted, limit: int, used: Used) -> tuple[Any, ...]:
    return (*wanted, WINDOW - used.rows, limit, MOST_BYTES, SECONDS - used.seconds)


def _matching(found: Rows) -> Matching:
    return Matching(*found[0].values())
