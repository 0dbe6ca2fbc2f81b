"""Renewing a watch token, for whoever may see the job."""

import time
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel

from forge.http import watch_tokens
from forge.http.access import User
from forge.http.described import problems
from forge.http.jobs_read import row_of

router = APIRouter(tags=["jobs"])


class WatchToken(BaseModel):
    """What lets a browser follow one job for an hour."""

    watch_token: str
    expires_at: int


@router.post(
    "/_api/jobs/{job_id}/watch_token",
    operation_id="renew_watch_token",
    responses=problems("not_found", "invalid"),
)
async def renew(job_id: UUID, request: Request, caller: User) -> WatchToken:
    """Make a new watch token for a job that the caller may see."""
    await row_of(caller, job_id)
    now = time.time()
    token = watch_tokens.make(job_id, request.app.state.watch_secret, now)
    return WatchToken(watch_token=token, expires_at=int(now) + watch_tokens.LIFETIME)
