"""The OpenAPI document: the routes, and every registered type with its own schema."""

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse

from forge.calls.definition import CallDefinition
from forge.http import calls_described
from forge.http.access import LocalOrStaff
from forge.http.described import problems
from forge.http.job_types import known_types
from forge.http.routes import need_of, walk
from forge.http.shapes import JobTypeOut, ProblemOut
from forge.http.types_described import describe_types

router = APIRouter(tags=["about"])
# What FastAPI itself would answer with, and this server never does.
NOT_OURS = ("HTTPValidationError", "ValidationError")
# What any request may be answered with, and what any with a token.
ALWAYS = ("too_large", "invalid", "internal")
GUARDED = ("unauthenticated", "forbidden", "unavailable")


@router.get(
    "/openapi.json",
    operation_id="openapi",
    response_model=dict[str, Any],
    openapi_extra={"security": [{"bearer": []}, {}]},
)
async def openapi(request: Request, _: LocalOrStaff) -> JSONResponse:
    """Return this document, to staff and to callers on the same machine."""
    app = request.app.state.forge
    database = await (await app.session()).database()
    types = [JobTypeOut.model_validate(kind) for kind in await known_types(app, database.run)]
    written = document(request.app, types, app.calls.values())
    return JSONResponse(written | {"servers": [{"url": request.scope.get("root_path") or "/"}]})


def document(
    api: FastAPI,
    types: Iterable[JobTypeOut] = (),
    calls: Iterable[CallDefinition[Any, Any]] = (),
) -> dict[str, Any]:
    """Write the document of a server that has these types, mutations and actions."""
    written = get_openapi(
        title=api.title, version=api.version, summary=api.summary, routes=api.routes
    )
    paths, schemas = written["paths"], written["components"]["schemas"]
    for name in NOT_OURS:
        schemas.pop(name, None)
    schemas["Problem"] = _problem()
    written["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    _tell_needs(api, paths)
    for described in (describe_types(types, paths), calls_described.describe(calls)):
        schemas |= described.schemas
        paths |= described.paths
    for path, operations in paths.items():
        for operation in operations.values():
            _tell_problems(path, operation)
    return written


def _problem() -> dict[str, Any]:
    schema = ProblemOut.model_json_schema()
    # Written out where it is used, so that the component stands alone.
    fault = schema.pop("$defs")["FaultOut"]
    schema["properties"]["errors"]["items"] = fault
    return schema | {"title": "Problem"}


def _tell_needs(api: FastAPI, paths: dict[str, Any]) -> None:
    """Write at each operation which role it needs."""
    for route in walk(api.routes):
        need = need_of(route)
        if need is None or not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for method in route.methods or ():
            paths[route.path_format][method.lower()]["x-forge-role"] = str(need)


def _tell_problems(path: str, operation: dict[str, Any]) -> None:
    """Write at an operation all that it may be refused with."""
    codes = [*ALWAYS]
    if "requestBody" in operation:
        codes += ["bad_request"]
    if "{" in path:
        codes += ["not_found"]
    if "x-forge-role" in operation:
        operation.setdefault("security", [{"bearer": []}])
        codes += GUARDED
    told = operation["responses"]
    if "application/json" in told.get("422", {}).get("content", {}):
        del told["422"]  # FastAPI's own
    told |= {str(code): said for code, said in problems(*codes).items() if str(code) not in told}
    operation["responses"] = dict(sorted(told.items()))
