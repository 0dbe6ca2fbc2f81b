"""Mutations and actions over HTTP: the body is the input, the response the output."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from forge.calls.context import CallIdentity
from forge.calls.run import Answer, CallRunner
from forge.core.errors import DatabaseUnavailable, ForgeError, GrantMissing, TimedOut
from forge.core.signals import Rejected
from forge.core.trace_context import valid_traceparent
from forge.definitions.call import CallDefinition
from forge.http.auth.access import Caller, RequiredRole, User
from forge.http.middleware.json_route import read
from forge.http.problems.error_handlers import CODE_BY_STATUS
from forge.http.problems.problem import PROBLEM_TYPES, Problem, ProblemType, problems


class Rejection(Problem):
    """A problem with the status, and optionally the code, that the handler chose."""

    def __init__(self, error: Rejected) -> None:
        code = CODE_BY_STATUS.get(error.status, "bad_request")
        super().__init__(error.code or code, str(error), errors=error.faults)
        self._type = PROBLEM_TYPES[code]._replace(status=error.status)

    @property
    def type(self) -> ProblemType:
        return self._type


Correlation = Annotated[
    UUID | None, Header(description="Stored with the jobs that the call dispatches.")
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
    """Run a mutation in one transaction; it is rolled back if the caller disconnects."""
    definition = _find(caller, "mutation", name)
    input = await _input(request, caller, definition)
    called = _call(
        caller.app.call_runner, definition, input, _who(request, caller, x_correlation_id)
    )
    return _response(await _while_connected(request, called))


@router.post("/_api/actions/{name}", operation_id="call_action", responses=REFUSED)
async def call_action(
    name: str, request: Request, caller: User, x_correlation_id: Correlation = None
) -> Response:
    """Run an action; it continues if the caller disconnects."""
    definition = _find(caller, "action", name)
    input = await _input(request, caller, definition)
    who = _who(request, caller, x_correlation_id)
    return _response(await _call(caller.app.call_runner, definition, input, who))


def _find(caller: Caller, call_type: str, name: str) -> CallDefinition[Any, Any]:
    definition = caller.app.calls.get(name)
    if definition is None or definition.kind != call_type:
        raise Problem("not_found", f"{call_type} not found; register it with the app")
    RequiredRole(definition.role).check(caller.identity)
    return definition


async def _input(
    request: Request, caller: Caller, definition: CallDefinition[Any, Any]
) -> dict[str, Any]:
    body = read(_ANY, await request.body(), request.headers.get("content-type"))
    return definition.arguments.of_json(body, limit=caller.app.config.payload.max_input)


def _who(request: Request, caller: Caller, correlation_id: UUID | None) -> CallIdentity:
    who = CallIdentity.of(caller.identity.as_auth(), caller.tenant_id, correlation_id)
    return who._replace(traceparent=valid_traceparent(request.headers.get("traceparent")))


async def _call(
    runner: CallRunner,
    definition: CallDefinition[Any, Any],
    input: dict[str, Any],
    who: CallIdentity,
) -> Answer:
    try:
        return await runner.run(definition, input, who)
    except Rejected as error:
        raise Rejection(error) from error
    except TimedOut as error:
        log.warning("%s", error)
        raise Problem("timed_out", f"{definition.name} timed out; try again later") from error
    except DatabaseUnavailable:
        raise
    except GrantMissing as error:
        log.error("%s", error)
        raise Problem(
            "internal",
            f"the server's database login lacks a grant for the {definition.kind} "
            f"{definition.name}; the server's log has the details",
        ) from error
    except ForgeError as error:
        # An error of the handler, not of the caller.
        log.error("%s %s failed", definition.kind, definition.name, exc_info=error)
        raise Problem("internal", "internal error; the server's log has the details") from error


def _response(answer: Answer) -> Response:
    return Response(answer.text, media_type="application/json")


async def _while_connected(request: Request, called: Coroutine[Any, Any, Answer]) -> Answer:
    """Cancel a call if its caller disconnects: the result could not be delivered."""
    running = asyncio.create_task(called)
    disconnected = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({running, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        raise Problem("bad_request", "the caller disconnected; nothing was written")
    finally:
        disconnected.cancel()
        running.cancel()
        await asyncio.gather(running, disconnected, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
