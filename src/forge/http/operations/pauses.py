"""Pauses of job types and queues: list, add, remove."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
)

from forge.core.duration import parse_duration
from forge.core.pause import LONGEST_REASON
from forge.http.auth.access import OperatingManager, OperatingStaff
from forge.http.fields import Items, Name, WrittenTime
from forge.http.jobs.shapes import RequestIn
from forge.http.middleware.json_route import AdmitFirst
from forge.http.problems.problem import problems

router = APIRouter(tags=["pauses"], route_class=AdmitFirst)

PauseDuration = Annotated[
    Any,
    PlainValidator(lambda value: parse_duration(value, what="for")),
    WithJsonSchema(
        {"type": "string", "pattern": r"^[0-9]+(us|ms|s|m|h|d)$", "examples": ["30m", "2h"]}
    ),
]


class PauseIn(BaseModel):
    """What to pause, for how long, and why."""

    model_config = ConfigDict(extra="forbid")

    type: Name | None = Field(
        None, description="A job type, or a type of schedules; null: every type of the queue."
    )
    queue: Name | None = Field(None, description="Null: the type in every queue.")
    for_: PauseDuration | None = Field(
        None, alias="for", description="Ends after this time; instead of `until`."
    )
    until: WrittenTime | None = Field(
        None, description="Ends at this time. Without either it lasts until it is removed."
    )
    reason: str = Field(min_length=1, max_length=LONGEST_REASON)


class PauseOut(BaseModel):
    """A pause in effect."""

    pause_id: UUID
    type: str | None
    queue: str | None
    until: datetime | None = Field(description="Null: until it is removed.")
    reason: str
    actor: str | None
    created_at: datetime


class AddedPause(PauseOut):
    """A new pause."""

    warning: str | None = Field(
        description="Set if nothing that is registered has the type or the queue."
    )


@router.get("/_api/pauses", operation_id="list_pauses", response_model=Items[PauseOut])
async def list_pauses(caller: OperatingStaff) -> Any:
    """List the pauses in effect, oldest first."""
    return {"items": [asdict(pause) for pause in await caller.app.pauses()]}


@router.post(
    "/_api/pauses",
    status_code=201,
    operation_id="add_pause",
    response_model=AddedPause,
    responses=problems("invalid"),
)
async def add_pause(caller: OperatingManager, body: PauseIn) -> Any:
    """Pause a job type, a queue, or a type in a queue; it replaces the pause that they have.

    Workers start no such job from a second later on at the latest. What runs goes on.
    """
    pause = await caller.app.pause(
        body.type,
        queue=body.queue,
        for_=body.for_,
        until=body.until,
        reason=body.reason,
        actor=caller.identity.name,
    )
    return asdict(pause) | {"warning": await caller.app.pause_warning(pause)}


@router.delete(
    "/_api/pauses/{pause_id}",
    status_code=204,
    operation_id="remove_pause",
    responses=problems("not_found"),
)
async def remove_pause(
    pause_id: UUID, caller: OperatingManager, body: RequestIn | None = None
) -> Response:
    """Remove a pause: its jobs start within seconds."""
    reason = body.reason if body else None
    await caller.app.resume(pause_id=pause_id, reason=reason, actor=caller.identity.name)
    return Response(status_code=204)
