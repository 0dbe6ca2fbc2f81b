"""`GET /_api/jobs/{id}/events`: follows one job with server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from forge.core.errors import ForgeError, UnknownJob
from forge.http.auth.authenticator import unauthenticated
from forge.http.live.access import (
    RECHECK_INTERVAL,
    SEND_TIMEOUT,
    Follower,
    JobAccess,
    LiveHub,
    current_state,
)
from forge.http.live.messages import live_problem
from forge.http.live.view import LiveState
from forge.http.problems.error_handlers import as_problem
from forge.http.problems.problem import Problem
from forge.jobs.hub import Hub, HubClosed, LatestState

MEDIA_TYPE = "text/event-stream"
# Suffix of the last event's id: a client that reconnects with it has seen everything.
FINAL_SUFFIX = "-final"
# Seconds between comments: many proxies close connections that are silent for a minute.
KEEP_ALIVE_INTERVAL = 15.0
# Milliseconds after which a browser reconnects.
RETRY_DELAY = 2000


class EventStream(StreamingResponse):
    """Sends the current state of a job, then each change, until it is final."""

    media_type = MEDIA_TYPE

    def __init__(self, hub: Hub[LiveState], job_id: UUID, access: JobAccess) -> None:
        self._hub = hub
        self._job_id = job_id
        self._access = access
        # X-Accel-Buffering: keeps nginx from buffering events.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__((), headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(SEND_TIMEOUT):
                await send(message)

        with self._hub.watching(self._job_id) as newest:
            self.body_iterator = self._events(newest)
            try:
                await super().__call__(scope, receive, send_in_time)
            except* (OSError, ClientDisconnect):
                pass  # the client disconnected or did not read in time (a TimeoutError)

    async def _events(self, newest: LatestState[LiveState]) -> AsyncIterator[str]:
        yield f"retry: {RETRY_DELAY}\n\n"
        silent_for = 0.0
        while self._access.is_valid():
            try:
                async with asyncio.timeout(RECHECK_INTERVAL):
                    job = await newest.next()
            except TimeoutError:
                silent_for += RECHECK_INTERVAL
                if silent_for >= KEEP_ALIVE_INTERVAL:
                    silent_for = 0.0
                    yield ":\n\n"
                continue
            except HubClosed:
                return  # the browser reconnects by itself
            except ForgeError as error:
                yield self._end(as_problem(error))
                return
            silent_for = 0.0
            if not self._access.covers(job):
                yield self._end(as_problem(UnknownJob.of(self._job_id)))
                return
            yield _event("job", job.job, f"{job.version}{FINAL_SUFFIX if job.is_final else ''}")
            if job.is_final:
                return
        yield self._end(
            unauthenticated("the token has expired or been revoked; reconnect with another one")
        )

    def _end(self, problem: Problem) -> str:
        return _event("problem", live_problem(problem, self._job_id))


def _event(name: str, data: str, id: str | None = None) -> str:
    id_line = "" if id is None else f"id: {id}\n"
    return f"event: {name}\n{id_line}data: {data}\n\n"


def _event_schema(name: str, data: str) -> dict[str, Any]:
    """Return the schema of an event whose data is a component."""
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"const": name},
            "id": {"type": "string"},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {"$ref": f"#/components/schemas/{data}"},
            },
        },
    }


router = APIRouter(tags=["live"])
EVENT = {"oneOf": [_event_schema("job", "LiveJob"), _event_schema("problem", "LiveProblem")]}


@router.get(
    "/_api/jobs/{job_id}/events",
    operation_id="follow_job",
    response_class=Response,
    # A watch token is an alternative.
    openapi_extra={"security": [{"bearer": []}, {}]},
    responses={
        200: {
            "content": {MEDIA_TYPE: {"schema": EVENT}},
            "description": "`event: job` with the state, then at each change, until final.",
        },
        204: {"description": "The client has seen the final state."},
    },
)
async def follow_job(
    connection: HTTPConnection,
    job_id: UUID,
    access: Follower,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Follow one job: its current state, then each change, until it is final."""
    live_hub: LiveHub = connection.app.state.live_hub
    hub = await live_hub.open()
    job = await current_state(hub, job_id, access)
    if job.is_final and (last_event_id or "").endswith(FINAL_SUFFIX):
        return Response(status_code=204)
    return EventStream(hub, job_id, access)
