"""`WS /_api/ws`: follows jobs and lists of jobs on a WebSocket."""

from fastapi import APIRouter, Depends
from starlette.websockets import WebSocket

from forge.http.auth.access import RequiredRole
from forge.http.auth.request_source import is_origin_allowed
from forge.http.live.access import LiveHub, SocketCheck, TokenAccess, access_by_request
from forge.http.live.follower_socket import FollowerSocket
from forge.http.problems.error_handlers import as_problem
from forge.http.problems.problem import Problem

router = APIRouter(tags=["live"])


@router.websocket(
    "/_api/ws", name="follow_jobs", dependencies=[Depends(SocketCheck(RequiredRole.USER))]
)
async def follow_jobs(websocket: WebSocket) -> None:
    """Send the current state of each followed job, then each change."""
    try:
        _check_origin(websocket)
        access = await _access(websocket)
        live_hub: LiveHub = websocket.app.state.live_hub
        hub, lists = await live_hub.open(), await live_hub.open_lists()
    except Exception as error:  # not accepted yet: reply with an HTTP response
        await websocket.send_denial_response(as_problem(error).answer())
        return
    await websocket.accept()
    await FollowerSocket(websocket, hub, lists, access).serve()


async def _access(websocket: WebSocket) -> TokenAccess | None:
    """Return the access of the request; None if the socket must authenticate with a message."""
    if {"authorization", "cookie"}.isdisjoint(websocket.headers):
        return None
    try:
        return await access_by_request(websocket)
    except Problem as problem:
        if problem.code == "unauthenticated" and "authorization" not in websocket.headers:
            return None  # cookies of something else
        raise


def _check_origin(websocket: WebSocket) -> None:
    allowed = websocket.app.state.forge.config.server.allowed_origins
    if not is_origin_allowed(websocket.headers, allowed):
        raise Problem(
            "forbidden",
            "this origin may not open a socket; add it to [server] allowed_origins",
        )
