"""Fast JSON routes that bypass FastAPI's argument handling, and early access checks."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from forge.http.auth.access import RequireRole
from forge.http.problems.problem import Problem

Handle = Callable[[Request], Coroutine[Any, Any, Response]]


class JsonBytes(Response):
    """A response of encoded JSON, without the general handling of headers."""

    def __init__(self, body: bytes, status: int) -> None:
        self.body = body
        self.status_code = status
        self.background = None
        self.raw_headers = [
            (b"content-length", b"%d" % len(body)),
            (b"content-type", b"application/json"),
        ]


class JsonRoute(APIRoute):
    """Calls `endpoint(request=…, caller=…, body=…)`; FastAPI only documents it.

    FastAPI's argument handling costs more than the dispatch itself. The signature of the endpoint
    declares the required role and the body, so nothing is declared twice.
    """

    def get_route_handler(self) -> Handle:
        types = get_type_hints(self.endpoint)
        body = TypeAdapter(types["body"])
        answer = TypeAdapter(types["return"])
        (check,) = _role_checks(self)
        endpoint, status = self.endpoint, self.status_code or 200

        async def handle(request: Request) -> Response:
            caller = await check(request)
            sent = read(body, await request.body(), request.headers.get("content-type"))
            made = await endpoint(request=request, caller=caller, body=sent, **request.path_params)
            return JsonBytes(answer.dump_json(made), status)

        return handle


class AdmitFirst(APIRoute):
    """Checks the role before the body is read; FastAPI reads the body first."""

    def get_route_handler(self) -> Handle:
        handle = super().get_route_handler()
        checks = _role_checks(self)
        if self.body_field is None or not checks:
            return handle
        (check,) = checks

        async def handle_admitted(request: Request) -> Response:
            await check(request)
            return await handle(request)

        return handle_admitted


class JsonFastPath:
    """Routes requests to JSON routes directly: the framework's routing is slow.

    It is installed inside the error handlers; all other requests take the usual path.
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


def _role_checks(route: APIRoute) -> list[RequireRole]:
    calls = [dependency.call for dependency in route.dependant.dependencies]
    return [call for call in calls if isinstance(call, RequireRole)]


def read(body: TypeAdapter[Any], sent: bytes, media_type: str | None) -> Any:
    """Validate a body; an empty one counts as null."""
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
