"""Mutations and actions over HTTP: the body is the input, the answer the output."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from forge.app import Forge
from forge.calls.context import Who
from forge.calls.definition import CallDefinition
from forge.calls.run import Answer, run
from forge.core.errors import DatabaseUnavailable, ForgeError, GrantMissing, TimedOut
from forge.core.signals import Rejected
from forge.http.access import Caller, Need, User
from forge.http.described import problems
from forge.http.json_route import read
from forge.http.problem import Problem
from forge.http.rejection import Rejection
from forge.http.tracing import sent_with

Correlation = Annotated[
    UUID | None, Header(description="Ties the call and the jobs that it dispatches together.")
]
REFUSED = problems(
    "bad_request",
    "not_found",
    "conflict",
    "too_large",
    "unsupported_media_type",
    "invalid",
    "timed_out",
)
_ANY: TypeAdapter[Any] = TypeAdapter(Any)

router = APIRouter(tags=["calls"])
log = logging.getLogger("forge.http")


@router.post("/_api/mutations/{name}", operation_id="call_mutation", responses=REFUSED)
async def call_mutation(
    name: str, request: Request, caller: User, x_correlation_id: Correlation = None
) -> Response:
    """Run a mutation in one transaction; a caller that goes away before its end undoes it."""
    definition = _find(caller, "mutation", name)
    given = await _given(request, caller, definition)
    called = _call(caller.app, definition, given, _who(request, caller, x_correlation_id))
    return _told(await _while_connected(request, called))


@router.post("/_api/actions/{name}", operation_id="call_action", responses=REFUSED)
async def call_action(
    name: str, request: Request, caller: User, x_correlation_id: Correlation = None
) -> Response:
    """Run an action; it goes on to its end though its caller goes away."""
    definition = _find(caller, "action", name)
    given = await _given(request, caller, definition)
    who = _who(request, caller, x_correlation_id)
    return _told(await _call(caller.app, definition, given, who))


def _find(caller: Caller, kind: str, name: str) -> CallDefinition[Any, Any]:
    definition = caller.app.calls.get(name)
    if definition is None or definition.kind != kind:
        raise Problem("not_found", f"there is no {kind} of this name; register it with the app")
    Need(definition.role).demand_of(caller.identity)
    return definition


async def _given(
    request: Request, caller: Caller, definition: CallDefinition[Any, Any]
) -> dict[str, Any]:
    body = read(_ANY, await request.body(), request.headers.get("content-type"))
    return definition.arguments.of_json(body, limit=caller.app.config.payload.max_input)


def _who(request: Request, caller: Caller, correlation_id: UUID | None) -> Who:
    who = Who.of(caller.identity.as_auth(), caller.tenant_id, correlation_id)
    return who._replace(traceparent=sent_with(request))


async def _call(
    app: Forge, definition: CallDefinition[Any, Any], given: dict[str, Any], who: Who
) -> Answer:
    try:
        return await run(app, definition, given, who)
    except Rejected as error:
        raise Rejection(error) from error
    except TimedOut as error:
        log.warning("%s", error)
        raise Problem("timed_out", f"{definition.name} took too long; try again later") from error
    except DatabaseUnavailable:
        raise
    except GrantMissing as error:
        log.error("%s", error)
        raise Problem(
            "internal",
            f"the server's database login lacks a grant that the {definition.kind} "
            f"{definition.name} needs; the server's log says which",
        ) from error
    except ForgeError as error:
        # What its handler did wrong is not the fault of whoever called.
        log.error("%s %s failed", definition.kind, definition.name, exc_info=error)
        raise Problem(
            "internal", "something went wrong here; the server's log says what"
        ) from error


def _told(answer: Answer) -> Response:
    return Response(answer.text, media_type="application/json")


async def _while_connected(request: Request, called: Coroutine[Any, Any, Answer]) -> Answer:
    """Cancel a call whose caller has gone: nobody would learn that it was done."""
    running = asyncio.create_task(called)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        raise Problem("bad_request", "the caller went away; nothing was written")
    finally:
        gone.cancel()
        running.cancel()
        await asyncio.gather(running, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
