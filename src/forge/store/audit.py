"""What is asked of forge_audit_events."""

from typing import Any
from uuid import UUID

from forge.store.statement import Statement, ids, load


def add(
    event: str,
    actor: str | None,
    tenant: int | None,
    job_id: UUID | None,
    notes: str | None = None,
    detail: str | None = None,
) -> Statement[list[Any]]:
    return Statement(load("audit/add"), (event, actor, tenant, job_id, notes, detail), ids)


def prune(keep_seconds: float, limit: int) -> Statement[list[Any]]:
    return Statement(load("audit/prune"), (keep_seconds, limit), ids)
