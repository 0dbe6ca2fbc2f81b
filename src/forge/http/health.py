"""Whether the server lives, and whether it can serve: what load balancers ask."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from forge.http.canaries import CrewOut, require_database
from forge.http.described import problems
from forge.http.identity import Role
from forge.http.loopback import is_local
from forge.http.problem import Problem
from forge.store import jobs

router = APIRouter(tags=["health"])
AGAIN = {"Retry-After": "10"}


class Health(BaseModel):
    """That the server is well."""

    status: str


class Readiness(Health):
    """That the server can serve, and who works for it."""

    crews: list[CrewOut] | None = Field(
        None, description="With `deep`, to staff and on this machine: who consumes."
    )


@router.head("/livez", include_in_schema=False)
@router.get("/livez", operation_id="livez")
async def livez() -> Health:
    """Say that the server turns, whatever the database does."""
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
        bool, Query(description="Also see that every crew of workers consumes a tiny job.")
    ] = False,
) -> Readiness:
    """Say whether the database answers, accepts writes and has Forge's tables, and whether the
    authentication settings can be read; `deep`: whether jobs are consumed.

    A deep answer may be ten seconds old, and takes seven seconds at most.
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
    is_told = _may_know(request)
    if not crews:
        raise Problem("unavailable", "no worker lives; run `forge worker`", headers=AGAIN)
    if silent:
        names = ": " + ", ".join(crew.crew for crew in silent) if is_told else ""
        raise Problem(
            "unavailable",
            f"{len(silent)} of {len(crews)} crews of workers consume nothing{names}; look at the "
            "logs of their workers",
            headers=AGAIN,
        )
    return Readiness(status="ready", crews=crews if is_told else None)


def _may_know(request: Request) -> bool:
    """Whether a caller may learn what the workers are called: the route itself is open."""
    try:
        identity = request.app.state.authenticator.identify(request.headers.get("authorization"))
    except Problem:
        return is_local(request)
    return Role.STAFF in identity.roles
