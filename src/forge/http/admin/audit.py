"""The audit log."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, Field

from forge.core.sensitive.shown import shown_event
from forge.http.auth.access import Staff
from forge.http.fields import NEXT_CURSOR, Name, NumberCursor, RowNumber, TenantId
from forge.http.problems.problem import problems
from forge.store import audit
from forge.store.audit import AuditFilter

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
    stopped_early: bool = Field(
        description="Whether the search stopped at its limit of rows; `next_cursor` continues it."
    )


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
    schedule_id: UUID | None = None,
    tenant_id: TenantId | None = None,
    since: Annotated[AwareDatetime | None, Query(description="Created at or after.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Created before.")] = None,
    cursor: Annotated[NumberCursor | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> AuditPage:
    """List audit events, newest first, from at most 20,000 rows per page."""
    wanted = AuditFilter(
        event=event,
        actor=actor,
        since=since,
        until=until,
        tenant_id=caller.tenant_for(tenant_id),
        job_id=job_id,
        dlq_id=dlq_id,
        schedule_id=schedule_id,
    )
    before = None if cursor is None else int(cursor)
    page = await caller.run(audit.listed(wanted, before, limit))
    return AuditPage(
        items=[AuditEvent(**shown_event(event)) for event in page.items],
        next_cursor=None if page.next_cursor is None else str(page.next_cursor),
        stopped_early=page.stopped_early,
    )
