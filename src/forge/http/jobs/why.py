"""Why a job is not running."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from forge.core.lifecycle import Status
from forge.core.why import Detail, Reason, Why
from forge.http.auth.access import RequiredRole, User
from forge.http.jobs.read import row_of
from forge.http.problems.problem import problems
from forge.jobs.why import find_why

router = APIRouter(tags=["jobs"])


class WhyOut(BaseModel):
    """Why a job is not running."""

    job_id: UUID
    status: Status
    reason: Reason
    message: str = Field(description="One sentence for people.")
    facts: dict[str, Any] = Field(
        description="What the reason is based on; the reference lists the facts of each reason. "
        "Positions and estimates are coarse for tenants, and other workers are shown to staff only."
    )


@router.get(
    "/_api/jobs/{job_id}/why",
    operation_id="get_job_why",
    response_model=WhyOut,
    responses=problems("not_found"),
)
async def get_job_why(job_id: UUID, caller: User) -> Why:
    """Return why a job is not running: a reason, one sentence, and the facts behind it."""
    await row_of(caller, job_id)
    # Lanes are shared: exact values would let a tenant measure the activity of others.
    detail = Detail(
        is_exact=caller.tenant_id is None,
        has_workers=RequiredRole.STAFF.is_met_by(caller.identity.roles),
    )
    app = caller.app
    return await find_why(job_id, app.catalog, app.config, caller.run_over_all, detail)
