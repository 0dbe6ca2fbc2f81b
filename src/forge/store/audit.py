"""Statements on forge_audit_events, one function each."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.payload import decode_if_possible
from forge.store.statement import Row, Rows, Statement, ids, load

# Greater than every id.
ABOVE_ALL = 2**63 - 1
# Events that one page reads.
WINDOW = 20_000
# An event has the time at which its transaction began, and the id of the moment it was written.
LONGEST_TRANSACTION = timedelta(hours=1)


def add(
    event: str,
    actor: str | None,
    tenant: int | None,
    job_id: UUID | None,
    notes: str | None = None,
    detail: str | None = None,
) -> Statement[list[Any]]:
    return Statement(load("audit/add"), (event, actor, tenant, job_id, notes, detail), ids)


def add_of_schedule(
    event: str,
    actor: str | None,
    tenant: int | None,
    schedule_id: UUID,
    notes: str | None = None,
    detail: str | None = None,
) -> Statement[list[Any]]:
    args = (event, actor, tenant, schedule_id, notes, detail)
    return Statement(load("audit/add_of_schedule"), args, ids)


def prune(keep_seconds: float, limit: int) -> Statement[list[Any]]:
    return Statement(load("audit/prune"), (keep_seconds, limit), ids)


class AuditFilter(NamedTuple):
    """The conditions on events; None means any."""

    event: str | None = None
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tenant_id: int | None = None
    job_id: UUID | None = None
    dlq_id: int | None = None
    schedule_id: UUID | None = None


class AuditEvents(NamedTuple):
    """Events, newest first."""

    items: list[dict[str, Any]]
    # The id to continue after; None at the end.
    next_cursor: int | None
    stopped_early: bool


def listed(wanted: AuditFilter, before: int | None, limit: int) -> Statement[AuditEvents]:
    """List events with the most selective index: of a job, letter, schedule, tenant, or all."""
    end = ABOVE_ALL if wanted.until is None else _id_at(wanted.until + LONGEST_TRANSACTION)
    first = 0 if wanted.since is None else _id_at(wanted.since)
    bounds = (end if before is None else min(before, end), first, WINDOW, limit + 1)
    args: tuple[Any, ...] = (*bounds, *wanted[:5])
    read = partial(_page, limit=limit)
    for name in ("job", "dlq", "schedule"):
        target = getattr(wanted, f"{name}_id")
        if target is not None:
            kind = "letter" if name == "dlq" else name
            return Statement(load(f"audit/list_of_{kind}"), (*args, target), read)
    name = "audit/list" if wanted.tenant_id is None else "audit/list_of_tenant"
    return Statement(load(name), args, read)


def _page(found: Rows, limit: int) -> AuditEvents:
    events = [_event(row) for row in found if row["matches"]]
    if len(events) > limit:
        return AuditEvents(events[:limit], events[limit - 1]["id"], False)
    is_stop = bool(found) and found[-1]["is_stop"]
    return AuditEvents(events, found[-1]["id"] if is_stop else None, is_stop)


def _event(row: Row) -> dict[str, Any]:
    event = {name: value for name, value in row.items() if name not in ("matches", "is_stop")}
    return event | {"detail": decode_if_possible(row["detail"])}


def _id_at(moment: datetime) -> int:
    """Return the smallest id of a given time, as forge_new_number() makes them."""
    microseconds = (moment - _FIRST_DAY) // timedelta(microseconds=1)
    return min(max(microseconds << 2, 0), ABOVE_ALL)


_FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
