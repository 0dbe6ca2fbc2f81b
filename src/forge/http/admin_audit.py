"""The audit over HTTP: who asked for what, and why."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from forge.core.shown import shown_event
from forge.http.access import Staff
from forge.http.admin_shapes import AuditEvent, AuditPage, Cursor, Number, Tenant
from forge.http.described import problems
from forge.http.shapes import Name
from forge.store import audit

router = APIRouter(tags=["admin"])


@router.get(
    "/_api/audit",
    operation_id="list_audit",
    response_model=AuditPage,
    responses=problems("invalid"),
)
async def list_audit(
    caller: Staff,
    event: Name | None = None,
    actor: Name | None = None,
    job_id: UUID | None = None,
    dlq_id: Number | None = None,
    tenant_id: Tenant | None = None,
    cursor: Annotated[Cursor | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> AuditPage:
    """List what was asked for, the latest first."""
    found = await caller.run(
        audit.listed(
            before=None if cursor is None else int(cursor),
            limit=limit + 1,
            event=event,
            actor=actor,
            tenant=caller.tenant_meant(tenant_id),
            job_id=job_id,
            dlq_id=dlq_id,
        )
    )
    page = found[:limit]
    return AuditPage(
        items=[AuditEvent(**shown_event(event)) for event in page],
        next_cursor=str(page[-1]["id"]) if len(found) > limit else None,
    )
