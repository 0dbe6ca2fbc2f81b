"""Finding a page of jobs: where to look for them, and where the next page goes on."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from forge.core.lifecycle import FINAL, State, Status
from forge.core.wish import parse_priority
from forge.http.access import Caller
from forge.http.gathering_jobs import Gathered, Look, gather
from forge.http.problem import Fault, invalid
from forge.http.shapes import JobPage
from forge.store import listing
from forge.store.listing import WINDOW, Wanted

NEWEST = UUID(int=2**128 - 1)
OLDEST = UUID(int=0)
ENDED = FINAL - {Status.COMPLETED}
LIVE = frozenset(Status) - FINAL
# Ids carry the time of whoever made them, whose clock may differ from the database's.
SKEW = timedelta(minutes=1)


class Asked(NamedTuple):
    """Which jobs are asked for, as the request says it."""

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


async def find_page(caller: Caller, asked: Asked, limit: int) -> tuple[JobPage, int]:
    """Return the next jobs of those that are asked for, and how much JSON they hold."""
    statuses = _statuses(asked)
    if statuses is not None and not statuses:
        return JobPage(items=[], next_cursor=None, stopped_early=False), 0
    wanted = wanted_by(asked)
    tenant = caller.tenant_meant(asked.tenant_id)
    found = await gather(caller, _way(tenant, statuses), wanted, limit, asked.q)
    if found.stopped_early and asked.q is None and statuses is not None and set(statuses) <= LIVE:
        found = await _few(caller, tenant, wanted, limit) or found
    cursor = None if found.last is None else write_cursor(found.last)
    page = JobPage(items=found.jobs, next_cursor=cursor, stopped_early=found.stopped_early)
    return page, found.size


def _way(tenant: int | None, statuses: Collection[Status] | None) -> Look:
    """Return the statement that reads the fewest rows for these jobs."""
    if tenant is not None:
        return partial(listing.page_of_tenant, tenant)
    if statuses is not None and ENDED.issuperset(statuses):
        return listing.page_ended
    return listing.page


async def _few(caller: Caller, tenant: int | None, wanted: Wanted, limit: int) -> Gathered | None:
    """Look among the jobs that are not final, wherever they lie, unless they are too many."""
    live = await caller.run_over_all(listing.count_live(WINDOW + 1))
    if sum(row["count"] for row in live) > WINDOW:
        return None
    return await gather(caller, partial(listing.page_live, tenant), wanted, limit)


def _statuses(asked: Asked) -> Collection[Status] | None:
    if asked.status is None and asked.state is None:
        return None
    return [
        status
        for status in Status
        if asked.status in (None, status) and asked.state in (None, status.state)
    ]


def wanted_by(asked: Asked) -> Wanted:
    """Return what is asked for as the database is asked for it."""
    statuses = _statuses(asked)
    before = NEWEST if asked.cursor is None else read_cursor(asked.cursor)
    oldest = OLDEST
    if asked.until is not None:
        before = min(before, _id_at(asked.until, SKEW))
    if asked.since is not None:
        oldest = _id_at(asked.since, -SKEW)
    return Wanted(
        before=before,
        from_id=oldest,
        statuses=None if statuses is None else [str(status) for status in statuses],
        job_type=asked.type,
        queue=asked.queue,
        priority=None if asked.priority is None else _priority(asked.priority),
        since=asked.since,
        until=asked.until,
        category=asked.category,
        correlation_id=asked.correlation_id,
        error_class=asked.error_class,
        idempotency_key=asked.idempotency_key,
    )


def write_cursor(job_id: UUID) -> str:
    """Write the place after a job so that nobody takes it for more than a place."""
    return urlsafe_b64encode(job_id.bytes).rstrip(b"=").decode()


def read_cursor(text: str) -> UUID:
    """Read a place, or refuse what is none."""
    try:
        place = UUID(bytes=urlsafe_b64decode(f"{text}==".encode("ascii")))
    except ValueError:
        place = None
    if place is None or write_cursor(place) != text:
        fault = Fault("query.cursor", "is not the next_cursor of a page; leave it out to begin")
        raise invalid([fault])
    return place


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _id_at(moment: datetime, skew: timedelta) -> UUID:
    """Return the first id that can have been made at a moment."""
    milliseconds = (moment - _EPOCH + skew) // timedelta(milliseconds=1)
    return UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)


def _priority(text: str) -> int:
    return parse_priority(int(text) if text.isdigit() else text)
