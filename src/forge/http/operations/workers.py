"""Workers."""

from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from forge.http.auth.access import Staff
from forge.http.fields import Items
from forge.store import workers

router = APIRouter(tags=["workers"])


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
    max_concurrent: int
    running: int
    draining: bool
    started_at: datetime
    last_heartbeat: datetime
    silent_for: float = Field(description="Seconds since its last heartbeat.")
    is_alive: bool


@router.get("/_api/workers", operation_id="list_workers", response_model=Items[WorkerOut])
async def list_workers(caller: Staff) -> Any:
    """List workers that are alive or were recently, oldest first."""
    dead_after = caller.app.config.worker.dead_after.total_seconds()
    found = await caller.run(workers.listed())
    return {"items": [dict(row) | {"is_alive": row["silent_for"] < dead_after} for row in found]}
