"""`WS /_api/ws`: one socket, on which any number of jobs is followed."""

from fastapi import APIRouter
from starlette.websockets import WebSocket

from forge.http.live import hub_of, right_of_header
from forge.http.live_conversation import Conversation
from forge.http.origin import is_allowed
from forge.http.problem import Problem
from forge.http.refusals import as_problem

router = APIRouter(tags=["live"])


@router.websocket("/_api/ws", name="follow_jobs")
async def follow_jobs(websocket: WebSocket) -> None:
    """Show jobs as they stand and at each change; each subscription is authorised by itself."""
    try:
        _check_origin(websocket)
        has_token = "authorization" in websocket.headers
        right = right_of_header(websocket) if has_token else None
        hub = await hub_of(websocket)
    except Exception as error:  # there is no socket yet, so that it is answered as a request is
        await websocket.send_denial_response(as_problem(error).answer())
        return
    await websocket.accept()
    await Conversation(websocket, hub, right).hold()


def _check_origin(websocket: WebSocket) -> None:
    allowed = websocket.app.state.forge.config.server.allowed_origins
    if not is_allowed(websocket.headers, allowed):
        raise Problem(
            "forbidden",
            "pages of this origin may not open a socket here; add it to [server] allowed_origins",
        )
