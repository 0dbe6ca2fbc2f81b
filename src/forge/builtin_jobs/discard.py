"""forge.discard: closes the review of many dead letters, in batches, on any worker.

Each batch is written into the checkpoint before it is discarded, and the next attempt reads its
effect back from the database: a worker that is killed at any point loses and counts nothing twice.
"""

from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from forge.core.job import BUILTIN_QUEUE
from forge.core.payload import encode
from forge.core.signals import Snooze
from forge.dead_letters.bulk import DiscardRequest
from forge.definitions.job import job
from forge.store import audit, dead_letters, jobs
from forge.store.jobs import AttemptUpdate

if TYPE_CHECKING:
    from forge.jobs.context import JobContext

DISCARD = "forge.discard"
BATCH = 500
# Batches after which an attempt ends and another one continues, so that a worker can stop soon.
MAX_BATCHES = 10
PAUSE = timedelta(milliseconds=50)


@dataclass
class DiscardProgress:
    """The state that one attempt leaves for the next."""

    after: int = 0
    batch: list[int] = field(default_factory=list)
    discarded: int = 0
    skipped: int = 0


@job(name=DISCARD, queue=BUILTIN_QUEUE, priority="high", dead_letter=False, max_attempts=20)
async def discard(ctx: "JobContext", input: DiscardRequest) -> dict[str, Any]:
    """Discard all dead letters under review that match."""
    if ctx.tenant_id is not None:
        # The database has verified the job's tenant, but not the one in the input.
        input = input.model_copy(update={"tenant_id": ctx.tenant_id})
    so_far = DiscardProgress(**(ctx.checkpoint or {}))
    if so_far.batch:
        await _finish(ctx, input, so_far)
    for _ in range(MAX_BATCHES):
        so_far.batch = await ctx.run(
            dead_letters.choose(input.filter, after=so_far.after, until=input.until, limit=BATCH)
        )
        await _remember(ctx, input, so_far)
        if not so_far.batch:
            break
        await _finish(ctx, input, so_far)
    else:
        raise Snooze(PAUSE)
    output = {"discarded": so_far.discarded, "skipped": so_far.skipped}
    event = "job_dlq_bulk_discard_finished"
    await ctx.run(
        audit.add(event, ctx.auth.actor, input.tenant_id, ctx.job_id, input.notes, encode(output))
    )
    return output


async def _finish(ctx: "JobContext", input: DiscardRequest, so_far: DiscardProgress) -> None:
    """Discard the batch; an earlier attempt may have discarded a part of it."""
    await ctx.run(
        dead_letters.discard(
            so_far.batch, ctx.tenant_id, ctx.auth.actor, input.notes, request_id=ctx.job_id
        )
    )
    found = await ctx.run(dead_letters.outcomes(so_far.batch))
    discarded = sum(one.request_id == ctx.job_id for one in found)
    so_far.discarded += discarded
    so_far.skipped += len(so_far.batch) - discarded
    so_far.after = max(so_far.batch)
    so_far.batch = []


async def _remember(ctx: "JobContext", input: DiscardRequest, so_far: DiscardProgress) -> None:
    done = so_far.discarded + so_far.skipped
    note = AttemptUpdate(
        ctx.job_id,
        ctx.lease,
        min(99, 100 * done // max(1, input.letters)),
        f"{done} of {input.letters} discarded",
        encode(asdict(so_far)),
    )
    if not await ctx.run(jobs.note([note])):
        raise ctx.stale("discard")
