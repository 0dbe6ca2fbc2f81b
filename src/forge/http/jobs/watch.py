"""Renewal of watch tokens."""

from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel

from forge.http.auth.access import User
from forge.http.jobs.read import row_of
from forge.http.problems.problem import problems

router = APIRouter(tags=["jobs"])


class WatchTokenOut(BaseModel):
    """A token to follow one job, valid for an hour at most and no longer than the caller's."""

    watch_token: str
    expires_at: int


@router.post(
    "/_api/jobs/{job_id}/watch_token",
    operation_id="renew_watch_token",
    responses=problems("not_found", "invalid"),
)
async def renew(job_id: UUID, request: Request, caller: User) -> WatchTokenOut:
    """Create a watch token for a job of the caller's tenant."""
    await row_of(caller, job_id)
    token = request.app.state.watch_tokens.make(job_id, caller.identity)
    return WatchTokenOut(watch_token=token.text, expires_at=token.expires_at)
