"""Statements on forge_audit_events, one function each."""

from typing import Any
from uuid import UUID

from forge.core.payload import decode_if_possible
from forge.store.statement import Rows, Statement, ids, load

# Greater than every id.
ABOVE_ALL = 2**63 - 1


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
    event: str, actor: str | None, tenant: int | None, schedule_id: UUID, notes: str | None = None
) -> Statement[list[Any]]:
    args = (event, actor, tenant, schedule_id, notes)
    return Statement(load("audit/add_of_schedule"), args, ids)


def prune(keep_seconds: float, limit: int) -> Statement[list[Any]]:
    return Statement(load("audit/prune"), (keep_seconds, limit), ids)


def listed(
    *,
    before: int | None,
    limit: int,
    event: str | None = None,
    actor: str | None = None,
    tenant: int | None = None,
    job_id: UUID | None = None,
    dlq_id: int | None = None,
) -> Statement[list[dict[str, Any]]]:
    """List events with the most selective index: of a job, a dead letter, a tenant, or all."""
    args: tuple[Any, ...] = (
        ABOVE_ALL if before is None else before,
        limit,
        event,
        actor,
        tenant,
    )
    if job_id is not None:
        return Statement(load("audit/list_of_job"), (*args, job_id), _events)
    if dlq_id is not None:
        return Statement(load("audit/list_of_letter"), (*args, dlq_id), _events)
    if tenant is not None:
        return Statement(load("audit/list_of_tenant"), args, _events)
    return Statement(load("audit/list"), args, _events)


def _events(found: Rows) -> list[dict[str, Any]]:
    return [dict(row) | {"detail": decode_if_possible(row["detail"])} for row in found]
