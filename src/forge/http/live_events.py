"""`GET /_api/jobs/{id}/events`: one job followed as server-sent events."""

import asyncio
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query
from starlette.requests import HTTPConnection
from starlette.responses import Response

from forge.core.errors import DatabaseUnavailable, UnknownJob
from forge.http.access import Need
from forge.http.live import Right, hub_of, right_of_header, right_of_watch_token
from forge.http.live_stream import FINAL, MEDIA_TYPE, EventStream
from forge.http.live_view import LiveJob
from forge.http.problem import Problem
from forge.hub import Closed, Hub

router = APIRouter(tags=["live"])
PATIENCE = 5.0
# One event of the stream.
EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "id": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}


async def follower(
    connection: HTTPConnection,
    job_id: UUID,
    watch_token: Annotated[
        str | None, Query(description="Instead of a bearer token: a right to this one job.")
    ] = None,
) -> Right:
    """Return by which right the caller follows this job."""
    if watch_token is None:
        return right_of_header(connection)
    return right_of_watch_token(connection, watch_token, job_id)


follower.need = Need.USER  # type: ignore[attr-defined]
Follower = Annotated[Right, Depends(follower)]


@router.get(
    "/_api/jobs/{job_id}/events",
    operation_id="follow_job",
    response_class=Response,
    # A watch token serves instead.
    openapi_extra={"security": [{"bearer": []}, {}]},
    responses={
        200: {
            "content": {MEDIA_TYPE: {"schema": EVENT}},
            "description": "`event: job` as the job stands and at each change, until it is final.",
        },
        204: {"description": "Its final state was seen: there is nothing more to wait for."},
    },
)
async def follow_job(
    connection: HTTPConnection,
    job_id: UUID,
    right: Follower,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Follow one job: its present state, then each change, until it is final."""
    hub = await hub_of(connection)
    job = await _present(hub, job_id)
    if not right.covers(job):
        raise UnknownJob.of(job_id)
    if job.is_final and (last_event_id or "").endswith(FINAL):
        return Response(status_code=204)
    return EventStream(hub, job_id, right)


async def _present(hub: Hub[LiveJob], job_id: UUID) -> LiveJob:
    with hub.watching(job_id) as newest:
        try:
            async with asyncio.timeout(PATIENCE):
                return await newest.next()
        except TimeoutError:
            raise DatabaseUnavailable(f"no answer within {PATIENCE:g} s; try again") from None
        except Closed:
            raise Problem(
                "unavailable", "the server stops; come back", headers={"Retry-After": "1"}
            ) from None
