"""Renewing a watch token, for callers who may see the job."""

from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel

from forge.http.access import User
from forge.http.described import problems
from forge.http.jobs_read import row_of

router = APIRouter(tags=["jobs"])


class WatchTokenOut(BaseModel):
    """A right to follow one job, for an hour at most and no longer than the caller's token."""

    watch_token: str
    expires_at: int


@router.post(
    "/_api/jobs/{job_id}/watch_token",
    operation_id="renew_watch_token",
    responses=problems("not_found", "invalid"),
)
async def renew(job_id: UUID, request: Request, caller: User) -> WatchTokenOut:
    """Make a new watch token for a job that the caller may see."""
    await row_of(caller, job_id)
    made = request.app.state.watch_tokens.make(job_id, caller.identity)
    return WatchTokenOut(watch_token=made.text, expires_at=made.expires_at)
