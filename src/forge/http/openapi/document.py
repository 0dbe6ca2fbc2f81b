"""The OpenAPI document: routes, job types, mutations and actions."""

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse

from forge.definitions.call import CallDefinition
from forge.http.auth.access import LocalOrStaff
from forge.http.jobs.job_types import JobTypeOut, known_types
from forge.http.live.messages import message_schemas
from forge.http.openapi.definitions import describe_calls, describe_job_types
from forge.http.problems.problem import ProblemOut, problems
from forge.http.routes import required_role_of, walk

router = APIRouter(tags=["about"])
# FastAPI's own error schemas, which this server never returns.
UNUSED_SCHEMAS = ("HTTPValidationError", "ValidationError")
# Problems of any route, and of any route that requires a role.
COMMON_PROBLEMS = ("too_large", "invalid", "internal")
ROLE_PROBLEMS = ("unauthenticated", "forbidden", "unavailable")

COMPONENT = "#/components/schemas/{model}"
# OpenAPI describes no WebSockets: these are the components of their messages.
WEBSOCKET = {
    "path": "/_api/ws",
    "client": {"$ref": COMPONENT.format(model="ClientMessage")},
    "server": {"$ref": COMPONENT.format(model="ServerMessage")},
}


@router.get(
    "/openapi.json",
    operation_id="openapi",
    response_model=dict[str, Any],
    openapi_extra={"security": [{"bearer": []}, {}]},
)
async def openapi(request: Request, _: LocalOrStaff) -> JSONResponse:
    """Return this document, to staff and to callers on loopback."""
    app = request.app.state.forge
    database = await (await app.session()).database()
    types = [JobTypeOut.model_validate(found) for found in await known_types(app, database.run)]
    written = document(request.app, types, app.calls.values())
    return JSONResponse(written | {"servers": [{"url": request.scope.get("root_path") or "/"}]})


def document(
    api: FastAPI,
    types: Iterable[JobTypeOut] = (),
    calls: Iterable[CallDefinition[Any, Any]] = (),
) -> dict[str, Any]:
    """Return the document of a server with these types, mutations and actions."""
    written = get_openapi(
        title=api.title, version=api.version, summary=api.summary, routes=api.routes
    )
    paths, schemas = written["paths"], written["components"]["schemas"]
    for name in UNUSED_SCHEMAS:
        schemas.pop(name, None)
    schemas["Problem"] = _problem()
    schemas |= message_schemas(COMPONENT)
    written["x-forge-websocket"] = WEBSOCKET
    written["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    _add_roles(api, paths)
    for described in (describe_job_types(types, paths), describe_calls(calls)):
        schemas |= described.schemas
        paths |= described.paths
    for path, operations in paths.items():
        for operation in operations.values():
            _add_problems(path, operation)
    return written


def _problem() -> dict[str, Any]:
    schema = ProblemOut.model_json_schema()
    # Inlined, so that the component has no references.
    fault = schema.pop("$defs")["FaultOut"]
    schema["properties"]["errors"]["items"] = fault
    return schema | {"title": "Problem"}


def _add_roles(api: FastAPI, paths: dict[str, Any]) -> None:
    """Add the required role to each operation."""
    for route in walk(api.routes):
        role = required_role_of(route)
        if role is None or not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for method in route.methods or ():
            paths[route.path_format][method.lower()]["x-forge-role"] = str(role)


def _add_problems(path: str, operation: dict[str, Any]) -> None:
    """Add all problems of an operation to its responses."""
    codes = [*COMMON_PROBLEMS]
    if "requestBody" in operation:
        codes += ["bad_request"]
    if "{" in path:
        codes += ["not_found"]
    if "x-forge-role" in operation:
        operation.setdefault("security", [{"bearer": []}])
        codes += ROLE_PROBLEMS
    responses = operation["responses"]
    if "application/json" in responses.get("422", {}).get("content", {}):
        del responses["422"]  # FastAPI's own
    for status, response in problems(*codes).items():
        responses.setdefault(str(status), response)
    operation["responses"] = dict(sorted(responses.items()))
