"""`GET /_api/jobs/{id}/live`: the live view of one job, for clients that poll."""

from uuid import UUID

from fastapi import APIRouter
from starlette.requests import HTTPConnection
from starlette.responses import Response

from forge.http.live.access import Follower, LiveHub, current_state
from forge.http.live.view import LiveJob
from forge.http.problems.problem import problems

router = APIRouter(tags=["live"])


@router.get(
    "/_api/jobs/{job_id}/live",
    operation_id="get_live_job",
    response_model=LiveJob,
    # A watch token is an alternative.
    openapi_extra={"security": [{"bearer": []}, {}]},
    responses=problems("not_found"),
)
async def get_live_job(connection: HTTPConnection, job_id: UUID, access: Follower) -> Response:
    """Return the current state of a job, as followers see it."""
    live_hub: LiveHub = connection.app.state.live_hub
    state = await current_state(await live_hub.open(), job_id, access)
    return Response(state.job, media_type="application/json")
