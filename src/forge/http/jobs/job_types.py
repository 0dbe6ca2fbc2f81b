"""Job types with their defaults and schemas."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from forge.core.job_type import JobType
from forge.core.payload import decode_if_possible
from forge.http.auth.access import User
from forge.http.fields import Duration, Items, PriorityValue
from forge.store import job_types
from forge.store.statement import Statement

if TYPE_CHECKING:
    from forge.app import Forge

Run = Callable[[Statement[list[JobType]]], Awaitable[list[JobType]]]
router = APIRouter(tags=["job types"])


class JobTypeOut(BaseModel):
    """A registered job type and its defaults."""

    name: str
    description: str | None = Field(description="The docstring of its handler.")
    queue: str
    priority: PriorityValue
    max_attempts: int
    timeout: Duration
    worker_capability: str | None
    category: str | None
    requires: list[str] | None = Field(
        description="Required payload fields; null: one of the references of its category."
    )
    idempotent: str | None = Field(
        description="Source of idempotency keys: `input`, `input.…`, or `function`."
    )
    dead_letter: bool
    isolation: str
    retry: dict[str, Any] | None
    input_schema: dict[str, Any] | None = Field(description="JSON Schema of `args`; null: any.")
    output_schema: dict[str, Any] | None = Field(
        description="JSON Schema of the `output` of its jobs; null: any."
    )


@router.get("/_api/job_types", operation_id="list_job_types", response_model=Items[JobTypeOut])
async def list_job_types(caller: User) -> Any:
    """List job types by name."""
    return {"items": await known_types(caller.app, caller.run)}


async def known_types(app: "Forge", run: Run) -> list[dict[str, Any]]:
    """Return the registered types and this app's own, the latter as its code defines them."""
    known = [*await run(job_types.listed()), *(own.job_type for own in app.definitions.values())]
    by_name = {job_type.name: job_type for job_type in known}
    return [_shown(by_name[name]) for name in sorted(by_name)]


def _shown(job_type: JobType) -> dict[str, Any]:
    shown = job_type.as_row()
    for name in ("requires", "retry", "input_schema", "output_schema"):
        if isinstance(shown[name], str):
            shown[name] = decode_if_possible(shown[name])
    return shown
