"""The workers, for whoever looks after them."""

from typing import Any

from fastapi import APIRouter

from forge.http.access import Staff
from forge.http.shapes import Items, WorkerOut
from forge.store import workers

router = APIRouter(tags=["workers"])


@router.get("/_api/workers", operation_id="list_workers", response_model=Items[WorkerOut])
async def list_workers(caller: Staff) -> Any:
    """List the workers that live or lately did, the oldest first."""
    dead_after = caller.app.config.worker.dead_after.total_seconds()
    found = await caller.run(workers.listed())
    return {"items": [dict(row) | {"is_alive": row["silent_for"] < dead_after} for row in found]}
