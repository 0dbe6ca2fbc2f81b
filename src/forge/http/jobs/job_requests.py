"""Requests about one job, such as cancel and move, which a worker carries out."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field, model_validator

from forge.builtin_jobs.job_requests import (
    Asked,
    cancelling,
    deleting,
    moving,
    reprioritising,
    rescheduling,
    running_now,
)
from forge.core.lifecycle import FINAL, OWNED, Status
from forge.core.new_job import DispatchOptions
from forge.http.auth.access import Caller, Manager, User
from forge.http.fields import AnyPriority, Delay, Name, WrittenTime
from forge.http.jobs.dispatch import is_kept_in_line, keep_in_line
from forge.http.jobs.read import row_of
from forge.http.jobs.shapes import RequestIn, RequestOut
from forge.http.middleware.json_route import AdmitFirst
from forge.http.problems.problem import Problem, problems
from forge.jobs.prepare import prepare
from forge.store.statement import Row

router = APIRouter(tags=["jobs"], route_class=AdmitFirst)
REFUSED = problems("not_found", "conflict")
CHANGE_REFUSED = problems("not_found", "conflict", "invalid", "forbidden", "priority_too_high")


class RescheduleIn(RequestIn):
    """When the job runs, and why it is rescheduled."""

    scheduled_at: WrittenTime | None = Field(None, description="Or `delay`.")
    delay: Delay | None = Field(None, description="Time from now; instead of `scheduled_at`.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "RescheduleIn":
        if (self.scheduled_at is None) == (self.delay is None):
            raise ValueError("give either scheduled_at or delay")
        return self

    @property
    def at(self) -> datetime | timedelta:
        return self.delay if self.scheduled_at is None else self.scheduled_at  # type: ignore[return-value]


class ReprioritiseIn(RequestIn):
    """The new priority, and why it changes."""

    priority: AnyPriority


class MoveIn(RequestIn):
    """The queue that the job moves to, and why."""

    queue: Name


@router.post(
    "/_api/jobs/{job_id}/cancel",
    status_code=202,
    operation_id="cancel_job",
    response_model=RequestOut,
    responses=REFUSED,
)
async def cancel_job(job_id: UUID, caller: User, body: RequestIn | None = None) -> RequestOut:
    """Ask a worker to cancel a job, in any status."""
    row = await _row(caller, job_id, "cancelled", FINAL)
    return await _request(caller, row, cancelling(job_id, _reason(body)))


@router.post(
    "/_api/jobs/{job_id}/run_now",
    status_code=202,
    operation_id="run_job_now",
    response_model=RequestOut,
    responses=REFUSED,
)
async def run_job_now(job_id: UUID, caller: User, body: RequestIn | None = None) -> RequestOut:
    """Ask a worker to make a waiting job due at once."""
    row = await _row(caller, job_id, "made due", FINAL | OWNED)
    return await _request(caller, row, running_now(job_id, _reason(body)))


@router.post(
    "/_api/jobs/{job_id}/reschedule",
    status_code=202,
    operation_id="reschedule_job",
    response_model=RequestOut,
    responses=CHANGE_REFUSED,
)
async def reschedule_job(job_id: UUID, caller: User, body: RescheduleIn) -> RequestOut:
    """Ask a worker to give a waiting job another time."""
    row = await _row(caller, job_id, "rescheduled", FINAL | OWNED)
    at = body.at
    if isinstance(at, datetime) and is_kept_in_line(caller):
        options: DispatchOptions = {"scheduled_at": at}
        keep_in_line((await caller.app.catalog.find(row["job_type"], caller.run)).job_type, options)
        at = options.get("scheduled_at", timedelta())
    return await _request(caller, row, rescheduling(job_id, at, body.reason))


@router.post(
    "/_api/jobs/{job_id}/reprioritise",
    status_code=202,
    operation_id="reprioritise_job",
    response_model=RequestOut,
    responses=CHANGE_REFUSED,
)
async def reprioritise_job(job_id: UUID, caller: User, body: ReprioritiseIn) -> RequestOut:
    """Ask a worker to give a waiting job another priority."""
    row = await _row(caller, job_id, "reprioritised", FINAL | OWNED)
    _refuse_builtin(row)
    if is_kept_in_line(caller):
        job_type = (await caller.app.catalog.find(row["job_type"], caller.run)).job_type
        keep_in_line(job_type, {"priority": body.priority})
    return await _request(caller, row, reprioritising(job_id, body.priority, body.reason))


@router.post(
    "/_api/jobs/{job_id}/move",
    status_code=202,
    operation_id="move_job",
    response_model=RequestOut,
    responses=CHANGE_REFUSED,
)
async def move_job(job_id: UUID, caller: User, body: MoveIn) -> RequestOut:
    """Ask a worker to move a waiting job to another queue."""
    row = await _row(caller, job_id, "moved", FINAL | OWNED)
    _refuse_builtin(row)
    return await _request(caller, row, moving(job_id, body.queue, body.reason))


@router.delete(
    "/_api/jobs/{job_id}",
    status_code=202,
    operation_id="delete_job",
    response_model=RequestOut,
    responses=REFUSED,
)
async def delete_job(job_id: UUID, caller: Manager, body: RequestIn | None = None) -> RequestOut:
    """Ask a worker to give up, cancel or erase a job, depending on its status."""
    row = await _row(caller, job_id, "deleted", OWNED)
    return await _request(caller, row, deleting(job_id, _reason(body)))


def _reason(body: RequestIn | None) -> str | None:
    return body.reason if body else None


def _refuse_builtin(row: Row) -> None:
    if row["job_type"].startswith("forge."):
        raise Problem(
            "forbidden", "types in forge.* are Forge's own and stay where they are; leave them"
        )


async def _row(caller: Caller, job_id: UUID, done: str, forbidden: Collection[Status]) -> Row:
    """Return a job of the caller's, or refuse one in a status in which the request must fail."""
    row = await row_of(caller, job_id)
    if (status := Status(row["status"])) in forbidden:
        raise Problem("conflict", f"the job is {status}, so that it cannot be {done}; look at it")
    return row


async def _request(caller: Caller, row: Row, asked: Asked) -> RequestOut:
    """Dispatch a built-in job; it checks tenant and status again and writes the audit event."""
    definition, input = asked
    auth: dict[str, Any] = caller.identity.as_auth() | {"actor": caller.identity.name}
    options: DispatchOptions = {"auth": auth}
    if row["tenant_id"] is not None:
        options["tenant_id"] = row["tenant_id"]
    encoder = await caller.app.catalog.find(definition)
    batcher = await caller.app.dispatcher.batcher()
    made = await batcher.insert(prepare(encoder, input, options), caller.tenant_id)
    return RequestOut(job_id=made.id, job_type=definition.name, target_id=row["id"])
