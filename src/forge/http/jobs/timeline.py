"""The timeline of a job."""

from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from forge.core.timeline import EntryKind, Timeline
from forge.http.auth.access import RequiredRole, User
from forge.http.jobs.read import row_of
from forge.http.off_loop import THREAD_THRESHOLD, answer_of
from forge.http.problems.problem import problems
from forge.jobs.timeline import read_timeline

router = APIRouter(tags=["jobs"])
# More entries are serialised in a thread.
MANY_ENTRIES = 50


class TimelineEntryOut(BaseModel):
    """One thing that happened to a job."""

    at: datetime
    kind: EntryKind
    message: str = Field(description="In one line, for people.")
    lease: int | None = Field(description="The claim that it belongs to.")
    attempt: int | None
    worker_id: UUID | None
    detail: dict[str, Any] = Field(description="By kind; the reference lists the names.")


class TimelineOut(BaseModel):
    """What happened to a job, oldest first."""

    job_id: UUID
    items: list[TimelineEntryOut]
    truncated: bool = Field(
        description="Whether earlier attempts, lines or audit events are left out."
    )


@router.get(
    "/_api/jobs/{job_id}/timeline",
    operation_id="get_job_timeline",
    response_model=TimelineOut,
    responses=problems("not_found"),
)
async def get_job_timeline(job_id: UUID, caller: User) -> Response:
    """Return what happened to a job, oldest first; audit events for callers with `staff` only."""
    await row_of(caller, job_id)
    is_staff = RequiredRole.STAFF.is_met_by(caller.identity.roles)
    found: Timeline = await read_timeline(
        job_id, caller.app.catalog, caller.run, with_audit=is_staff
    )
    return await answer_of(THREAD_THRESHOLD if len(found.items) > MANY_ENTRIES else 0, found)
