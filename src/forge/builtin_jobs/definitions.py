"""The built-in job types: requests that a worker carries out, since only workers change jobs."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import BaseModel

from forge.builtin_jobs.reprocess import REPROCESS, reprocess
from forge.core.job import BUILTIN_QUEUE, CANARY
from forge.core.lifecycle import FINAL, OWNED, Status
from forge.core.new_job import check_moment, check_uuid
from forge.core.signals import NonRetryable, Snooze
from forge.definitions.job import JobDefinition
from forge.definitions.signature import Handler
from forge.store import jobs
from forge.store.notify import CHANGES, WAKE, attempt_payload, changes_payload, send, worker_channel
from forge.store.statement import Rows

if TYPE_CHECKING:
    from forge.jobs.context import JobContext

CANCEL = "forge.cancel"
DELETE = "forge.delete"
RUN_NOW = "forge.run_now"
RESCHEDULE = "forge.reschedule"
# The built-in type to dispatch, and its input.
Asked = tuple[JobDefinition[Any, Any], dict[str, Any]]


class Request(BaseModel):
    """The job to change, and why."""

    job_id: UUID
    reason: str | None = None


class RescheduleRequest(Request):
    """The job to reschedule, and when it runs."""

    at: datetime


class Canary(BaseModel):
    """Finished canaries to erase."""

    previous: list[UUID] = []


async def cancel(ctx: "JobContext", input: Request) -> dict[str, Any]:
    """Cancel a job in any status, and notify the worker that runs it."""
    found = await ctx.run(jobs.cancel(*_asked(ctx, input)))
    for row in found:
        if row["was"] in OWNED:
            over = attempt_payload(row["id"], row["lease"])
            await ctx.run(send(worker_channel(row["worker_id"]), over))
    return await _report(ctx, input, found, "cancelled")


async def delete(ctx: "JobContext", input: Request) -> dict[str, Any]:
    """Give up a job that waits for a retry, cancel a pending one, erase a final one."""
    status = await _status(ctx, input.job_id)
    if status in OWNED:
        raise NonRetryable(
            f"job {input.job_id} is being processed; cancel it first, then delete it"
        )
    if status is Status.PENDING:
        return await cancel(ctx, input)
    if status is Status.RETRY:
        found = await ctx.run(jobs.give_up(*_asked(ctx, input)))
        return await _report(ctx, input, found, "failed")
    found = await ctx.run(jobs.erase(*_asked(ctx, input)))
    if not found:
        raise NonRetryable(f"job {input.job_id} has a dead letter under review; settle that first")
    return await _report(ctx, input, found, "erased")


async def run_now(ctx: "JobContext", input: Request) -> dict[str, Any]:
    """Make a waiting job due at once."""
    return await _move(ctx, input, None)


async def reschedule(ctx: "JobContext", input: RescheduleRequest) -> dict[str, Any]:
    """Move a waiting job to another time."""
    return await _move(ctx, input, input.at)


async def canary(ctx: "JobContext", input: Canary) -> None:
    """Show that a worker consumes jobs, and erase earlier canaries."""
    if input.previous:
        await ctx.run(jobs.erase_canaries(input.previous))


async def _move(ctx: "JobContext", input: Request, at: datetime | None) -> dict[str, Any]:
    found = await ctx.run(jobs.reschedule(*_asked(ctx, input), at=at))
    if found:
        await ctx.run(send(WAKE))
    return await _report(ctx, input, found, "moved")


def _asked(
    ctx: "JobContext", input: Request
) -> tuple[list[UUID], int | None, str | None, str | None]:
    """Return the job, the tenant, the reason and the actor, for the audit."""
    actor = ctx.auth.actor
    return [input.job_id], ctx.tenant_id, input.reason, actor


async def _status(ctx: "JobContext", job_id: UUID) -> Status:
    found = await ctx.run(jobs.get([job_id]))
    if not found or (ctx.tenant_id is not None and found[0]["tenant_id"] != ctx.tenant_id):
        raise NonRetryable(f"there is no job {job_id}")
    return Status(found[0]["status"])


async def _report(ctx: "JobContext", input: Request, found: Rows, what: str) -> dict[str, Any]:
    """Return what was done, or raise why nothing was."""
    if not found:
        status = await _status(ctx, input.job_id)
        reason = "it is final" if status in FINAL else f"it is {status}"
        raise NonRetryable(f"job {input.job_id} was left alone: {reason}")
    await ctx.run(send(CHANGES, changes_payload({input.job_id})))
    return {"job_id": str(input.job_id), "done": what}


def cancelling(job_id: UUID | str, reason: str | None) -> Asked:
    """Return what asks a worker to cancel a job."""
    return REQUESTS[CANCEL], {"job_id": str(check_uuid(job_id)), "reason": reason}


def deleting(job_id: UUID | str) -> Asked:
    """Return what asks a worker to delete a job."""
    return REQUESTS[DELETE], {"job_id": str(check_uuid(job_id))}


def running_now(job_id: UUID | str) -> Asked:
    """Return what asks a worker to make a job due."""
    return REQUESTS[RUN_NOW], {"job_id": str(check_uuid(job_id))}


def rescheduling(job_id: UUID | str, at: datetime) -> Asked:
    """Return what asks a worker to move a job to another time."""
    moment = check_moment(at, "at").isoformat()
    return REQUESTS[RESCHEDULE], {"job_id": str(check_uuid(job_id)), "at": moment}


def canary_of(hears: Callable[[], bool]) -> JobDefinition[Any, Any]:
    """Return the canary of a worker that completes it only while every wake-up reaches it."""

    async def answer(ctx: "JobContext", input: Canary) -> None:
        if not hears():
            raise Snooze("1s")  # for another worker of its group, or for later
        await canary(ctx, input)

    return _definition(CANARY, answer)


def canary_for(group: str) -> JobDefinition[Any, Any]:
    """Return the canary that only the workers of one group take."""
    return _definition(CANARY, canary, group)


def _definition(name: str, handler: Handler, group: str | None = None) -> JobDefinition[Any, Any]:
    return JobDefinition(
        handler,
        name=name,
        queue=BUILTIN_QUEUE,
        priority="critical",
        dead_letter=False,
        worker_capability=group,
    )


# Requests that take no longer than a few statements. A worker carries them out beside its slots.
SHORT_REQUESTS = (CANCEL, DELETE, RUN_NOW, RESCHEDULE, CANARY)
REQUESTS = {
    CANCEL: _definition(CANCEL, cancel),
    DELETE: _definition(DELETE, delete),
    RUN_NOW: _definition(RUN_NOW, run_now),
    RESCHEDULE: _definition(RESCHEDULE, reschedule),
    CANARY: _definition(CANARY, canary),
    REPROCESS: reprocess,
}
