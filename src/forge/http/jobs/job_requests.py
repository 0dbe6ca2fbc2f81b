"""Requests about one job, which a worker carries out: cancel, delete, run now."""

from collections.abc import Collection
from uuid import UUID

from fastapi import APIRouter

from forge.builtin_jobs.definitions import CANCEL, DELETE, REQUESTS, RUN_NOW
from forge.core.lifecycle import FINAL, OWNED, Status
from forge.core.new_job import DispatchOptions
from forge.http.auth.access import Caller, Manager, User
from forge.http.jobs.read import row_of
from forge.http.jobs.shapes import RequestIn, RequestOut
from forge.http.middleware.json_route import AdmitFirst
from forge.http.problems.problem import Problem, problems
from forge.jobs.prepare import prepare
from forge.store import audit

router = APIRouter(tags=["jobs"], route_class=AdmitFirst)
REFUSED = problems("not_found", "conflict")


@router.post(
    "/_api/jobs/{job_id}/cancel",
    status_code=202,
    operation_id="cancel_job",
    response_model=RequestOut,
    responses=REFUSED,
)
async def cancel_job(job_id: UUID, caller: User, body: RequestIn | None = None) -> RequestOut:
    """Ask a worker to cancel a job, in any status."""
    reason = body.reason if body else None
    return await _request(caller, CANCEL, "job_cancel_requested", job_id, FINAL, reason)


@router.post(
    "/_api/jobs/{job_id}/run_now",
    status_code=202,
    operation_id="run_job_now",
    response_model=RequestOut,
    responses=REFUSED,
)
async def run_job_now(job_id: UUID, caller: User) -> RequestOut:
    """Ask a worker to make a waiting job due at once."""
    return await _request(caller, RUN_NOW, "job_run_now_requested", job_id, FINAL | OWNED)


@router.delete(
    "/_api/jobs/{job_id}",
    status_code=202,
    operation_id="delete_job",
    response_model=RequestOut,
    responses=REFUSED,
)
async def delete_job(job_id: UUID, caller: Manager) -> RequestOut:
    """Ask a worker to give up, cancel or erase a job, depending on its status."""
    return await _request(caller, DELETE, "job_delete_requested", job_id, OWNED)


async def _request(
    caller: Caller,
    name: str,
    event: str,
    job_id: UUID,
    forbidden: Collection[Status],
    reason: str | None = None,
) -> RequestOut:
    """Write down who asked, then dispatch the built-in job; it checks tenant and status again."""
    row = await row_of(caller, job_id)
    if (status := Status(row["status"])) in forbidden:
        what = name.removeprefix("forge.")
        raise Problem("conflict", f"the job is {status}, so that {what} cannot be done; look at it")
    tenant, actor = row["tenant_id"], caller.identity.name
    await caller.run(audit.add(event, actor, tenant, job_id, reason))
    options: DispatchOptions = {"auth": caller.identity.as_auth() | {"actor": actor}}
    if tenant is not None:
        options["tenant_id"] = tenant
    encoder = await caller.app.catalog.find(REQUESTS[name])
    asked = prepare(encoder, {"job_id": str(job_id), "reason": reason}, options)
    batcher = await caller.app.dispatcher.batcher()
    made = await batcher.insert(asked, caller.tenant_id)
    return RequestOut(job_id=made.id, job_type=name, target_id=job_id)
