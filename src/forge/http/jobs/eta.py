"""The position of a waiting job in its lane, and an estimate of its start."""

from typing import Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from forge.core.eta import Eta, coarse, coarse_place, estimate
from forge.core.lifecycle import WAITING, Status
from forge.http.auth.access import User
from forge.http.jobs.read import row_of
from forge.http.problems.problem import problems
from forge.store import queue_statistics

router = APIRouter(tags=["jobs"])
MAX_POSITION = 10_000


class Position(BaseModel):
    """A position in a lane, and its precision."""

    count: int
    precision: Literal["exact", "at_least", "at_most"]


class EtaBounds(BaseModel):
    """Seconds until the job starts, at the pace of the last minutes."""

    low: float = Field(description="Earliest likely start.")
    high: float | None = Field(description="Latest likely start; null if unknown.")


class EtaOut(BaseModel):
    """The position of a job, and the estimate of its start."""

    job_id: UUID
    status: Status
    position: Position | None = Field(
        description="Position among jobs with the same type, queue, capability and priority; 1 is "
        "next. Exact for operators; rounded up to a power of ten for tenants. Null once the job "
        "is no longer waiting."
    )
    eta_seconds: EtaBounds | None = Field(
        description="Rounded outwards for tenants. Null if no job of its lane has started in the "
        "last ten minutes, and once the job is no longer waiting."
    )


@router.get(
    "/_api/jobs/{job_id}/eta",
    operation_id="get_job_eta",
    response_model=EtaOut,
    responses=problems("not_found"),
)
async def get_job_eta(job_id: UUID, caller: User) -> EtaOut:
    """Return the position of a waiting job in its lane, and an estimate of its start.

    Lanes with a higher priority go first. The measured pace includes that; when their load
    changes, the bounds change.
    """
    row = await row_of(caller, job_id)
    # Lanes are shared: exact values would let a tenant measure the activity of others.
    place = await caller.run_over_all(queue_statistics.ahead(job_id, MAX_POSITION))
    if place is None or place["status"] not in WAITING:
        status = Status(row["status"] if place is None else place["status"])
        return EtaOut(job_id=job_id, status=status, position=None, eta_seconds=None)
    ahead, is_capped = place["ahead"], place["ahead"] >= MAX_POSITION
    starts = await caller.run_over_all(queue_statistics.started_lately(job_id))
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
        return Position(count=MAX_POSITION if not is_exact else place, precision="at_least")
    if is_exact:
        return Position(count=place, precision="exact")
    return Position(count=coarse_place(place), precision="at_most")


def _bounds(found: Eta | None) -> EtaBounds | None:
    if found is None:
        return None
    high = None if found.high is None else round(found.high, 3)
    return EtaBounds(low=round(found.low, 3), high=high)
