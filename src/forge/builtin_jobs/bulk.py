"""forge.bulk: acts on all jobs that match."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.builtin_jobs.bulk_acts import act
from forge.builtin_jobs.bulk_content import compare, compare_all
from forge.builtin_jobs.bulk_work import BulkOrder, Changed, carry_out
from forge.core.bulk import BulkAction
from forge.core.job import BUILTIN_QUEUE
from forge.core.job_filter import OLDEST, id_at, moment_of
from forge.definitions.catalog import RunStatement
from forge.definitions.job import job
from forge.jobs.bulk import BulkRequest
from forge.store import bulk, jobs
from forge.store.bulk import Chosen

if TYPE_CHECKING:
    from forge.jobs.context import JobContext

BULK = "forge.bulk"
DONE = {
    BulkAction.CANCEL: "cancelled",
    BulkAction.RUN_NOW: "made due",
    BulkAction.DELETE: "deleted",
    BulkAction.RERUN: "run again",
    BulkAction.REPRIORITISE: "reprioritised",
    BulkAction.MOVE: "moved",
}


@job(name=BULK, queue=BUILTIN_QUEUE, priority="high", dead_letter=False, max_attempts=20)
async def bulk_job(ctx: "JobContext", input: BulkRequest) -> dict[str, Any]:
    """Act on the next jobs that match, for a short time."""
    (row,) = await ctx.run(jobs.get([ctx.job_id]))
    # The database has verified the job's tenant, but not the one in the input.
    wanted = input.for_tenant(ctx.tenant_id)
    return await carry_out(ctx, MatchingJobs(ctx, wanted, row["created_at"]))


class MatchingJobs:
    """The jobs that a request applies to."""

    def __init__(self, ctx: "JobContext", wanted: BulkRequest, requested_at: datetime) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._requested_at = requested_at
        # It does not apply to jobs created later.
        until = min(requested_at, wanted.filter.until or requested_at)
        self._filter = replace(wanted.filter, until=until)
        self.is_crowded = False
        # What the filter has chosen and is not compared yet.
        self._candidates: Chosen[UUID] = Chosen([], None)

    @property
    def order(self) -> BulkOrder:
        wanted = self._wanted
        done = DONE[wanted.action]
        return BulkOrder(
            str(wanted.action), done, "job", wanted.count, wanted.precision, wanted.rate
        )

    def read_id(self, text: str) -> UUID:
        return UUID(text)

    async def start(self) -> tuple[UUID, UUID]:
        start = UUID(int=max(self._wanted.filter.first_id.int - 1, 0))
        first = (await self._ctx.run(bulk.choose(self._wanted.filter, start, 1))).last_id
        return start, first or OLDEST

    async def choose(self, after: UUID) -> Chosen[UUID]:
        content = self._wanted.content
        if content.is_any:
            return await self._choose(after)
        if not self._candidates.ids:
            self._candidates = await self._choose(after)
        if not (ids := self._candidates.ids):
            return self._candidates
        compared = await compare(content, ids, self._ctx.run)
        last = compared.last_id
        rest = [] if last is None else [job_id for job_id in ids if job_id > last]
        self._candidates = self._candidates._replace(ids=rest)
        return compared if rest else compared._replace(last_id=self._candidates.last_id)

    async def _choose(self, after: UUID) -> Chosen[UUID]:
        wanted = self._wanted
        # Jobs created at `until` have smaller ids.
        if after > wanted.filter.end_id:
            return Chosen([], None)
        if wanted.ids is not None:
            return Chosen([id for id in wanted.ids if id > after], None)
        if bulk.is_of_live(self._filter) and not self.is_crowded:
            live = await self._ctx.run(bulk.choose_live(self._filter, after))
            if live is not None:
                return live
            self.is_crowded = True
        return await self._ctx.run(bulk.choose(self._filter, after))

    async def change(self, ids: Sequence[UUID], run: RunStatement) -> Changed[UUID]:
        locked = await run(bulk.lock(self._filter, ids))
        missing = sorted({*ids} - {job.id for job in locked})
        busy = await run(bulk.matching(self._filter, missing)) if missing else []
        if not (content := self._wanted.content).is_any:
            matching = await compare_all(content, [job.id for job in locked], run)
            locked = [job for job in locked if job.id in matching]
        return Changed(await act(self._ctx, self._wanted, locked, run), busy)

    def share(self, first: UUID, after: UUID) -> float:
        """Return the share by the times in the ids."""
        began, end = moment_of(first), moment_of(id_at(self._requested_at))
        return (moment_of(after) - began) / max(1, end - began)
