"""The built-in job types: requests that a worker carries out, since only workers change jobs."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import BaseModel

from forge.builtin_jobs.bulk import BULK, bulk_job
from forge.builtin_jobs.discard import DISCARD, discard
from forge.builtin_jobs.reprocess import REPROCESS, reprocess
from forge.core.job import BUILTIN_QUEUE, CANARY
from forge.core.lifecycle import FINAL, OWNED, WAITING, Status
from forge.core.payload import encode
from forge.core.signals import NonRetryable, Snooze
from forge.definitions.catalog import RunStatement
from forge.definitions.job import JobDefinition
from forge.definitions.signature import Handler
from forge.store import jobs
from forge.store.borrowed import run_on
from forge.store.jobs import AttemptUpdate
from forge.store.notify import CHANGES, WAKE, attempt_payload, changes_payload, send, worker_channel
from forge.store.statement import Row, Rows, Statement

if TYPE_CHECKING:
    from forge.jobs.context import JobContext

CANCEL = "forge.cancel"
DELETE = "forge.delete"
RUN_NOW = "forge.run_now"
RESCHEDULE = "forge.reschedule"
REPRIORITISE = "forge.reprioritise"
MOVE = "forge.move"
# What was done to which job.
Report = dict[str, Any]


class Request(BaseModel):
    """The job to change, and why."""

    job_id: UUID
    reason: str | None = None


class RescheduleRequest(Request):
    """The job to reschedule, and when it runs: at a time, or after a delay from then."""

    at: datetime | None = None
    delay: timedelta | None = None


class ReprioritiseRequest(Request):
    """The job to reprioritise, and its new priority."""

    priority: int


class MoveRequest(Request):
    """The job to move, and the queue it moves to."""

    queue: str


class Canary(BaseModel):
    """Finished canaries to erase."""

    previous: list[UUID] = []


async def cancel(ctx: "JobContext", input: Request) -> Report:
    """Cancel a job in any status, and notify the worker that runs it."""
    return await _once(ctx, partial(_cancel, ctx, input))


async def delete(ctx: "JobContext", input: Request) -> Report:
    """Give up a job that waits for a retry, cancel a pending one, erase a final one."""
    return await _once(ctx, partial(_delete, ctx, input))


async def run_now(ctx: "JobContext", input: Request) -> Report:
    """Make a waiting job due at once."""
    change = jobs.run_now(*_asked(ctx, input))
    return await _change_waiting(ctx, input, change, "made due")


async def reschedule(ctx: "JobContext", input: RescheduleRequest) -> Report:
    """Give a waiting job another time."""
    change = jobs.reschedule(*_asked(ctx, input), at=input.at, delay=input.delay)
    return await _change_waiting(ctx, input, change, "rescheduled")


async def reprioritise(ctx: "JobContext", input: ReprioritiseRequest) -> Report:
    """Give a waiting job another priority."""
    change = jobs.reprioritise(*_asked(ctx, input), priority=input.priority)
    return await _change_waiting(ctx, input, change, "reprioritised")


async def move(ctx: "JobContext", input: MoveRequest) -> Report:
    """Move a waiting job to another queue."""
    change = jobs.move(*_asked(ctx, input), queue=input.queue)
    return await _change_waiting(ctx, input, change, "moved")


async def canary(ctx: "JobContext", input: Canary) -> None:
    """Show that a worker consumes jobs, and erase earlier canaries."""
    if input.previous:
        await ctx.run(jobs.erase_canaries(input.previous))


async def _change_waiting(
    ctx: "JobContext", input: Request, change: Statement[Rows], what: str
) -> Report:
    """Change when or where a waiting job runs, and wake the workers."""

    async def act(run: RunStatement) -> Report:
        found = await run(change)
        if found:
            await run(send(WAKE))
            return await _report(ctx, input, run, found, what)
        job = await _get(ctx, input, run)
        if job["status"] in WAITING and job["queue"] != BUILTIN_QUEUE:
            return {"job_id": str(input.job_id), "done": "unchanged"}  # already as requested
        return await _report(ctx, input, run, found, what)

    return await _once(ctx, act)


async def _cancel(ctx: "JobContext", input: Request, run: RunStatement) -> Report:
    found = await run(jobs.cancel(*_asked(ctx, input)))
    for row in found:
        if row["was"] in OWNED:
            over = attempt_payload(row["id"], row["lease"])
            await run(send(worker_channel(row["worker_id"]), over))
    return await _report(ctx, input, run, found, "cancelled")


async def _delete(ctx: "JobContext", input: Request, run: RunStatement) -> Report:
    status = Status((await _get(ctx, input, run))["status"])
    if status in OWNED:
        raise NonRetryable(
            f"job {input.job_id} is being processed; cancel it first, then delete it"
        )
    if status is Status.PENDING:
        return await _cancel(ctx, input, run)
    if status is Status.RETRY:
        found = await run(jobs.give_up(*_asked(ctx, input)))
        return await _report(ctx, input, run, found, "failed")
    found = await run(jobs.erase(*_asked(ctx, input)))
    if not found:
        raise NonRetryable(f"job {input.job_id} has a dead letter under review; settle that first")
    return await _report(ctx, input, run, found, "erased")


async def _once(ctx: "JobContext", act: Callable[[RunStatement], Awaitable[Report]]) -> Report:
    """Carry out a request once, however often its attempts are interrupted.

    The change, its audit event and the report are written together, fenced by the lease.
    """
    if ctx.checkpoint is not None:
        known: Report = ctx.checkpoint
        return known
    async with ctx.transaction() as connection:
        run = partial(run_on, connection)
        await run(jobs.limit_locks())
        report = await act(run)
        note = AttemptUpdate(ctx.job_id, ctx.lease, None, None, encode(report))
        if not await run(jobs.note([note])):
            raise ctx.stale("request")
    return report


def _asked(
    ctx: "JobContext", input: Request
) -> tuple[list[UUID], int | None, str | None, str | None]:
    """Return the job, the tenant, the reason and the actor, for the audit."""
    actor = ctx.auth.actor
    return [input.job_id], ctx.tenant_id, input.reason, actor


async def _get(ctx: "JobContext", input: Request, run: RunStatement) -> Row:
    found = await run(jobs.get([input.job_id]))
    if not found or (ctx.tenant_id is not None and found[0]["tenant_id"] != ctx.tenant_id):
        raise NonRetryable(f"there is no job {input.job_id}")
    return found[0]


async def _report(
    ctx: "JobContext", input: Request, run: RunStatement, found: Rows, what: str
) -> Report:
    """Return what was done, or raise why nothing was."""
    if not found:
        job = await _get(ctx, input, run)
        reason = "it is final" if job["status"] in FINAL else f"it is {job['status']}"
        if job["status"] in WAITING:
            reason = f"{job['job_type']} is one of Forge's own"
        raise NonRetryable(f"job {input.job_id} was left alone: {reason}")
    await run(send(CHANGES, changes_payload({input.job_id})))
    return {"job_id": str(input.job_id), "done": what}


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


# Requests whose attempts are short. A worker carries them out beside its slots.
SHORT_REQUESTS = (CANCEL, DELETE, RUN_NOW, RESCHEDULE, REPRIORITISE, MOVE, BULK, DISCARD, CANARY)
REQUESTS = {
    CANCEL: _definition(CANCEL, cancel),
    DELETE: _definition(DELETE, delete),
    RUN_NOW: _definition(RUN_NOW, run_now),
    RESCHEDULE: _definition(RESCHEDULE, reschedule),
    REPRIORITISE: _definition(REPRIORITISE, reprioritise),
    MOVE: _definition(MOVE, move),
    CANARY: _definition(CANARY, canary),
    BULK: bulk_job,
    REPROCESS: reprocess,
    DISCARD: discard,
}
