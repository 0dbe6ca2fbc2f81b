"""Routes that read JSON and write JSON with nothing in between, for the busiest of them."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from forge.http.problem import Problem

Handle = Callable[[Request], Coroutine[Any, Any, Response]]


class JsonRoute(APIRoute):
    """Calls `endpoint(request=…, caller=…, body=…)`; FastAPI only describes it.

    Its way of finding arguments costs more than the dispatch itself. The endpoint's own signature
    says who may call and what the body is, so that nothing is said twice.
    """

    def get_route_handler(self) -> Handle:
        hints = get_type_hints(self.endpoint)
        body = TypeAdapter(hints["body"])
        answer = TypeAdapter(hints["return"])
        (admit,) = [need.call for need in self.dependant.dependencies if hasattr(need.call, "need")]
        endpoint, status = self.endpoint, self.status_code or 200
        assert admit is not None

        async def handle(request: Request) -> Response:
            caller = await admit(request)
            sent = read(body, await request.body(), request.headers.get("content-type"))
            made = await endpoint(request=request, caller=caller, body=sent, **request.path_params)
            return Response(answer.dump_json(made), status, media_type="application/json")

        return handle


class AdmitFirst(APIRoute):
    """Refuses callers without the role before their body is read, which FastAPI reads first."""

    def get_route_handler(self) -> Handle:
        handle = super().get_route_handler()
        admits = [need.call for need in self.dependant.dependencies if hasattr(need.call, "need")]
        if self.body_field is None or not admits:
            return handle
        (admit,) = admits
        assert admit is not None

        async def handle_admitted(request: Request) -> Response:
            await admit(request)
            return await handle(request)

        return handle_admitted


class ExpressLane:
    """Takes requests to JSON routes past the framework's routing, whose calls add up.

    It stands inside of whatever answers errors; every other request goes the ordinary way.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._lanes: list[tuple[JsonRoute, Handle]] = [
            (route, route.get_route_handler()) for route in routes if isinstance(route, JsonRoute)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            for route, handle in self._lanes:
                match, found = route.matches(scope)
                if match is Match.FULL:
                    scope["route"] = route
                    scope.update(found)
                    response = await handle(Request(scope, receive))
                    await response(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def read(body: TypeAdapter[Any], sent: bytes, media_type: str | None) -> Any:
    """Check a body against its type; an empty one stands for null."""
    if not sent.strip():
        sent = b"null"
    elif media_type is not None and "json" not in media_type:
        raise Problem(
            "unsupported_media_type", "the body is not JSON; send `Content-Type: application/json`"
        )
    try:
        return body.validate_json(sent)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError(
            [fault | {"loc": ("body", *fault["loc"])} for fault in faults]
        ) from None
