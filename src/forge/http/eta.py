"""Where a waiting job stands in its line, and when it may start."""

from typing import Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from forge.core.eta import Eta, coarse, coarse_place, estimate
from forge.core.lifecycle import WAITING, Status
from forge.http.access import User
from forge.http.described import problems
from forge.http.jobs_read import row_of
from forge.store import position

router = APIRouter(tags=["jobs"])
MOST_AHEAD = 10_000


class Position(BaseModel):
    """A place in a line, and how it is meant."""

    count: int
    precision: Literal["exact", "at_least", "at_most"]


class EtaBounds(BaseModel):
    """Seconds until the job starts, if its line goes on as it did in the last minutes."""

    low: float = Field(description="Hardly before.")
    high: float | None = Field(description="Hardly after; null where nothing bounds it.")


class EtaOut(BaseModel):
    """Where a job stands."""

    job_id: UUID
    status: Status
    position: Position | None = Field(
        description="Its place among the jobs of the same type, queue, capability and priority; 1 "
        "is next. Operators see it exactly; tenants see the power of ten that it does not exceed. "
        "Null once it is no longer waiting."
    )
    eta_seconds: EtaBounds | None = Field(
        description="Rounded outwards to a few steps for tenants. Null where nothing of its line "
        "was started in the last ten minutes, and once the job is no longer waiting."
    )


@router.get(
    "/_api/jobs/{job_id}/eta",
    operation_id="get_job_eta",
    response_model=EtaOut,
    responses=problems("not_found"),
)
async def get_job_eta(job_id: UUID, caller: User) -> EtaOut:
    """Say where a waiting job stands in its line, and when it may start.

    More urgent lines go first and take part of the workers' time: what was measured includes that,
    and a change of it moves the bounds.
    """
    row = await row_of(caller, job_id)
    # The line is shared: a tenant sees it in coarse steps, or it would measure what others do.
    place = await caller.run_over_all(position.ahead(job_id, MOST_AHEAD))
    if place is None or place["status"] not in WAITING:
        status = Status(row["status"] if place is None else place["status"])
        return EtaOut(job_id=job_id, status=status, position=None, eta_seconds=None)
    ahead, is_capped = place["ahead"], place["ahead"] >= MOST_AHEAD
    starts = await caller.run_over_all(position.started_lately(job_id))
    found = estimate(ahead, place["due_in"], starts, is_capped=is_capped)
    is_operator = caller.tenant_id is None
    return EtaOut(
        job_id=job_id,
        status=Status(place["status"]),
        position=_position(ahead + 1, is_capped=is_capped, is_exact=is_operator),
        eta_seconds=_bounds(found if is_operator or found is None else coarse(found)),
    )


def _position(place: int, *, is_capped: bool, is_exact: bool) -> Position:
    if is_capped:
        return Position(count=MOST_AHEAD if not is_exact else place, precision="at_least")
    if is_exact:
        return Position(count=place, precision="exact")
    return Position(count=coarse_place(place), precision="at_most")


def _bounds(found: Eta | None) -> EtaBounds | None:
    if found is None:
        return None
    high = None if found.high is None else round(found.high, 3)
    return EtaBounds(low=round(found.low, 3), high=high)
