"""Workers: list, show, drain, resume."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from forge.core.worker_record import WorkerRecord, WorkerState
from forge.http.auth.access import Caller, OperatingManager, Staff
from forge.http.fields import Items
from forge.http.jobs.shapes import RequestIn
from forge.http.middleware.json_route import AdmitFirst
from forge.http.problems.problem import problems
from forge.operations.workers import SHOWN_ALONE, SHOWN_IN_LIST

router = APIRouter(tags=["workers"], route_class=AdmitFirst)


class CurrentWorkOut(BaseModel):
    """A job, or a run of a schedule, that a worker holds."""

    kind: Literal["job", "run"]
    id: UUID = Field(description="Id of the job, or of the schedule.")
    type: str
    queue: str | None = Field(description="Null for runs of schedules.")
    status: str = Field(
        description="`running`, or `claimed` while it waits in the worker for a slot."
    )
    attempt: int
    since: datetime
    progress_percent: int | None
    tenant_id: int | None


class WorkerOut(BaseModel):
    """A worker that is alive or was recently."""

    id: UUID
    incarnation: UUID
    hostname: str
    pid: int
    version: str
    capabilities: list[str]
    queues: list[str] | None = Field(description="Null: every queue.")
    job_types: list[str]
    schedule_types: list[str]
    max_concurrent: int
    running: int = Field(description="Slots in use at the last heartbeat.")
    draining: bool = Field(description="Whether it shuts down.")
    started_at: datetime
    last_heartbeat: datetime
    silent_for: float = Field(description="Seconds since its last heartbeat.")
    is_alive: bool
    state: WorkerState
    drained_at: datetime | None = Field(
        description="Since when it claims nothing, until it is resumed; null: it claims."
    )
    drained_by: str | None = Field(description="For operators.")
    drain_reason: str | None = Field(description="For operators.")
    current: list[CurrentWorkOut] = Field(
        description=f"What it runs, the longest running first: at most {SHOWN_IN_LIST} in a list, "
        f"{SHOWN_ALONE} of a single worker. Of the caller's tenant only."
    )


@router.get("/_api/workers", operation_id="list_workers", response_model=Items[WorkerOut])
async def list_workers(caller: Staff) -> Any:
    """List workers that are alive or were recently, oldest first, with what they run."""
    found = await caller.app.workers.running(caller.run).list()
    return {"items": [_shown(caller, record) for record in found]}


@router.get(
    "/_api/workers/{worker_id}",
    operation_id="get_worker",
    response_model=WorkerOut,
    responses=problems("not_found"),
)
async def get_worker(worker_id: UUID, caller: Staff) -> Any:
    """Return a worker with what it runs."""
    return _shown(caller, await caller.app.workers.running(caller.run).get(worker_id))


@router.post(
    "/_api/workers/{worker_id}/drain",
    operation_id="drain_worker",
    response_model=WorkerOut,
    responses=problems("not_found"),
)
async def drain_worker(
    worker_id: UUID, caller: OperatingManager, body: RequestIn | None = None
) -> Any:
    """Have a worker claim nothing more until it is resumed or stops; what runs goes on.

    It follows with its next heartbeat.
    """
    reason, actor = body.reason if body else None, caller.identity.name
    return _shown(caller, await caller.app.workers.drain(worker_id, reason=reason, actor=actor))


@router.post(
    "/_api/workers/{worker_id}/resume",
    operation_id="resume_worker",
    response_model=WorkerOut,
    responses=problems("not_found"),
)
async def resume_worker(
    worker_id: UUID, caller: OperatingManager, body: RequestIn | None = None
) -> Any:
    """Have a drained worker claim again, from its next heartbeat on."""
    reason, actor = body.reason if body else None, caller.identity.name
    return _shown(caller, await caller.app.workers.resume(worker_id, reason=reason, actor=actor))


def _shown(caller: Caller, record: WorkerRecord) -> dict[str, Any]:
    shown = asdict(record) | {"state": record.state}
    if caller.tenant_id is not None:
        shown |= {"drained_by": None, "drain_reason": None}
    return shown
