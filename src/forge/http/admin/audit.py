"""The audit log."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from forge.core.sensitive.shown import shown_event
from forge.http.auth.access import Staff
from forge.http.fields import NEXT_CURSOR, Name, NumberCursor, RowNumber, TenantId
from forge.http.problems.problem import problems
from forge.store import audit

router = APIRouter(tags=["admin"])


class AuditEvent(BaseModel):
    """A request or review: actor, target and reason."""

    id: int
    event: str
    actor: str | None
    tenant_id: int | None
    job_id: UUID | None
    dlq_id: int | None
    schedule_id: UUID | None
    notes: str | None
    detail: Any
    created_at: datetime


class AuditPage(BaseModel):
    """A page of audit events, newest first."""

    items: list[AuditEvent]
    next_cursor: str | None = Field(description=NEXT_CURSOR)


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
    dlq_id: RowNumber | None = None,
    tenant_id: TenantId | None = None,
    cursor: Annotated[NumberCursor | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> AuditPage:
    """List audit events, newest first."""
    found = await caller.run(
        audit.listed(
            before=None if cursor is None else int(cursor),
            limit=limit + 1,
            event=event,
            actor=actor,
            tenant=caller.tenant_for(tenant_id),
            job_id=job_id,
            dlq_id=dlq_id,
        )
    )
    page = found[:limit]
    return AuditPage(
        items=[AuditEvent(**shown_event(event)) for event in page],
        next_cursor=str(page[-1]["id"]) if len(found) > limit else None,
    )
