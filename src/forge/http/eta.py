"""Where a waiting job stands in its line, and when it may start."""

from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from forge.core.eta import Eta, estimate
from forge.core.lifecycle import WAITING, Status
from forge.http.access import User
from forge.http.described import problems
from forge.http.jobs_read import row_of
from forge.http.shapes import Count, Precision
from forge.store import position

router = APIRouter(tags=["jobs"])
MOST_AHEAD = 10_000


class EtaBounds(BaseModel):
    """Seconds until the job starts, if its line goes on as it did in the last minutes."""

    low: float = Field(description="Hardly before.")
    high: float | None = Field(description="Hardly after; null where nothing bounds it.")


class EtaOut(BaseModel):
    """Where a job stands."""

    job_id: UUID
    status: Status
    position: Count | None = Field(
        description="Its place among the jobs of the same type, queue, capability and priority; 1 "
        "is next. Null once it is no longer waiting."
    )
    eta_seconds: EtaBounds | None = Field(
        description="Null where nothing of its line was started in the last ten minutes, and once "
        "the job is no longer waiting."
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
    # The line is everybody's: how long it is, though not what is in it, is no tenant's secret.
    place = await caller.run_over_all(position.ahead(job_id, MOST_AHEAD))
    if place is None or place["status"] not in WAITING:
        status = Status(row["status"] if place is None else place["status"])
        return EtaOut(job_id=job_id, status=status, position=None, eta_seconds=None)
    ahead, is_capped = place["ahead"], place["ahead"] >= MOST_AHEAD
    starts = await caller.run_over_all(position.started_lately(job_id))
    found = estimate(ahead, place["due_in"], starts, is_capped=is_capped)
    precision: Precision = "at_least" if is_capped else "exact"
    return EtaOut(
        job_id=job_id,
        status=Status(place["status"]),
        position=Count(count=ahead + 1, precision=precision),
        eta_seconds=_bounds(found),
    )


def _bounds(found: Eta | None) -> EtaBounds | None:
    if found is None:
        return None
    high = None if found.high is None else round(found.high, 3)
    return EtaBounds(low=round(found.low, 3), high=high)
