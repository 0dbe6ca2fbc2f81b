"""Liveness and readiness, for load balancers."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from forge.http.auth.access import Role
from forge.http.auth.request_source import is_local
from forge.http.operations.canaries import CrewOut, require_database
from forge.http.problems.problem import Problem, problems
from forge.store import jobs

router = APIRouter(tags=["health"])
RETRY_LATER = {"Retry-After": "10"}


class Health(BaseModel):
    """The status of the server."""

    status: str


class Readiness(Health):
    """The readiness of the server, and its worker groups."""

    crews: list[CrewOut] | None = Field(
        None, description="With `deep`, for staff and on loopback: the worker groups."
    )


@router.head("/livez", include_in_schema=False)
@router.get("/livez", operation_id="livez")
async def livez() -> Health:
    """Return 200 while the server runs, independent of the database."""
    return Health(status="alive")


@router.head("/readyz", include_in_schema=False, response_model_exclude_none=True)
@router.get(
    "/readyz",
    operation_id="readyz",
    response_model_exclude_none=True,
    responses=problems("unavailable"),
)
async def readyz(
    request: Request,
    deep: Annotated[
        bool, Query(description="Also check that every worker group consumes a canary job.")
    ] = False,
) -> Readiness:
    """Check that the database responds, accepts writes and has Forge's tables, and that the
    authentication settings are readable; with `deep`, that jobs are consumed.

    A deep result may be ten seconds old; a deep check takes seven seconds at most.
    """
    request.app.state.rules().require_current()
    await require_database(request.app.state.forge)
    if request.app.state.pending_limit is not None:
        session = await request.app.state.forge.session()
        await (await session.database()).run(jobs.count_waiting(0, 1))  # raises without its index
    return await _deep(request) if deep else Readiness(status="ready")


async def _deep(request: Request) -> Readiness:
    crews = await request.app.state.canaries.check()
    silent = [crew for crew in crews if crew.state == "silent"]
    may_see_names = await _may_see_names(request)
    if not crews:
        raise Problem("unavailable", "no worker is alive; run `forge worker`", headers=RETRY_LATER)
    if silent:
        names = ": " + ", ".join(crew.crew for crew in silent) if may_see_names else ""
        raise Problem(
            "unavailable",
            f"{len(silent)} of {len(crews)} worker groups consume no jobs{names}; see the logs of "
            "their workers",
            headers=RETRY_LATER,
        )
    return Readiness(status="ready", crews=crews if may_see_names else None)


async def _may_see_names(request: Request) -> bool:
    """Whether a caller may see the names of worker groups; the route itself is public."""
    try:
        identity = await request.app.state.authenticator.identify_request(request)
    except Problem:
        return is_local(request)
    return Role.STAFF in identity.roles
