"""forge.bulk: acts on all jobs that match, in slices, on any worker.

A slice is one transaction: it locks jobs that still match, acts on them, and writes the place
behind them into the checkpoint, fenced by the lease. So a worker that is killed at any point, or
two workers that carry out the same request, lose no job and act on none twice.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.builtin_jobs.bulk_acts import act
from forge.core.bulk import BulkAction
from forge.core.errors import StatementRefused
from forge.core.job import BUILTIN_QUEUE
from forge.core.job_filter import OLDEST, id_at, moment_of
from forge.core.pace import PAUSE, SHORTEST_PAUSE, Pace
from forge.core.payload import encode
from forge.core.signals import Snooze
from forge.definitions.job import job
from forge.jobs.bulk import BulkRequest
from forge.store import bulk, jobs
from forge.store.borrowed import run_on
from forge.store.bulk import Chosen
from forge.store.jobs import AttemptUpdate

if TYPE_CHECKING:
    from forge.jobs.context import JobContext

BULK = "forge.bulk"
# Jobs in one transaction: more would keep their locks, and what waits for the disk, for too long.
SLICE = 200
# Seconds of rest after each second of work, which leaves ordinary jobs their share of the database.
REST = 1.0
# Seconds after which an attempt ends and another one continues, so that a worker can stop soon.
ATTEMPT = 2.0
# Jobs that other transactions have locked and that are tried again, and for how many seconds at the
# end.
MAX_LOCKED = 1000
PATIENCE = 60.0
# Jobs that the database refuses to change before the request stops, and errors that are reported.
MAX_FAILED = 1000
MAX_ERRORS = 5
DONE = {
    BulkAction.CANCEL: "cancelled",
    BulkAction.RUN_NOW: "made due",
    BulkAction.DELETE: "deleted",
    BulkAction.RERUN: "run again",
    BulkAction.REPRIORITISE: "reprioritised",
    BulkAction.MOVE: "moved",
}


@dataclass(frozen=True)
class BulkProgress:
    """The state that one slice leaves for the next."""

    # When the request was made: it does not apply to jobs created later.
    requested_at: str
    # The id before all jobs that are left, and the first of all.
    after: str
    first: str
    done: int = 0
    # Jobs that no longer matched, or were as wanted already.
    skipped: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)
    # Jobs that another transaction had locked.
    locked: list[str] = field(default_factory=list)
    # Whether there are too many jobs that wait or run to read all of them.
    is_crowded: bool = False
    # Until when the jobs that were due at the wanted rate have been taken.
    paced: float = 0.0
    # When no jobs but the locked ones were left; None before.
    exhausted: float | None = None

    @property
    def seen(self) -> int:
        return self.done + self.skipped + self.failed


@job(name=BULK, queue=BUILTIN_QUEUE, priority="high", dead_letter=False, max_attempts=20)
async def bulk_job(ctx: "JobContext", input: BulkRequest) -> dict[str, Any]:
    """Act on the next jobs that match, for a short time."""
    # The database has verified the job's tenant, but not the one in the input.
    work = await BulkWork.opened(ctx, input.for_tenant(ctx.tenant_id))
    until = time.monotonic() + ATTEMPT
    while (reason := work.reason_to_stop()) is None and not work.is_done:
        if time.monotonic() > until or not await work.advance():
            raise work.pause()
    return work.report(reason)


class BulkWork:
    """One attempt."""

    def __init__(self, ctx: "JobContext", wanted: BulkRequest, so_far: BulkProgress) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._so_far = so_far
        requested = datetime.fromisoformat(so_far.requested_at)
        until = min(requested, wanted.filter.until or requested)
        self._filter = replace(wanted.filter, until=until)
        # What was chosen and not acted on yet.
        self._chosen = Chosen([], UUID(so_far.after))
        # One moment for the whole attempt: what falls due meanwhile is the next one's.
        self._now = time.time()

    @classmethod
    async def opened(cls, ctx: "JobContext", wanted: BulkRequest) -> "BulkWork":
        """Continue, or begin with the time of the request."""
        if ctx.checkpoint is not None:
            return cls(ctx, wanted, BulkProgress(**ctx.checkpoint))
        (row,) = await ctx.run(jobs.get([ctx.job_id]))
        start = UUID(int=max(wanted.filter.first_id.int - 1, 0))
        first = (await ctx.run(bulk.choose(wanted.filter, start, 1))).last_id
        so_far = BulkProgress(row["created_at"].isoformat(), str(start), str(first or OLDEST))
        return cls(ctx, wanted, so_far)

    @property
    def is_done(self) -> bool:
        so_far = self._so_far
        if so_far.exhausted is None:
            return False
        return not so_far.locked or self._now - so_far.exhausted > PATIENCE

    def reason_to_stop(self) -> str | None:
        so_far = self._so_far
        if so_far.failed >= MAX_FAILED:
            return f"{so_far.failed:,} jobs could not be changed: {so_far.errors[-1]}"
        return None

    async def advance(self) -> bool:
        """Act on the next slice; False if the next one is not due yet."""
        so_far = self._so_far
        if so_far.exhausted is not None or len(so_far.locked) >= MAX_LOCKED:
            return await self._retry_locked()
        if not (due := self._due()):
            return False
        if not self._chosen.ids:
            await self._choose()
        ids = self._chosen.ids[: min(due, SLICE)]
        if ids:
            began = time.monotonic()
            await self._act(ids)
            self._chosen = self._chosen._replace(ids=self._chosen.ids[len(ids) :])
            await asyncio.sleep(REST * (time.monotonic() - began))
        return True

    def pause(self) -> Snooze:
        """Return when to continue."""
        so_far = self._so_far
        if so_far.exhausted is not None or len(so_far.locked) >= MAX_LOCKED:
            return Snooze(timedelta(seconds=PAUSE))
        if self._wanted.rate is None:
            return Snooze(timedelta(seconds=SHORTEST_PAUSE))
        return Snooze(Pace(self._wanted.rate, so_far.paced).delay(time.time()))

    def report(self, reason: str | None) -> dict[str, Any]:
        so_far = self._so_far
        return {
            "action": str(self._wanted.action),
            "done": so_far.done,
            "skipped": so_far.skipped,
            "failed": so_far.failed,
            "locked": len(so_far.locked),
            "errors": so_far.errors,
            "stopped": reason,
        }

    def _due(self) -> int:
        """How many jobs are due by now at the wanted rate."""
        rate = self._wanted.rate
        if rate is None:
            return SLICE
        pace = Pace(rate, self._so_far.paced).caught_up(self._now)
        self._so_far = replace(self._so_far, paced=pace.taken_until)
        return pace.due(self._now)

    async def _choose(self) -> None:
        """Choose the next jobs, or find that there are none."""
        after = self._chosen.last_id
        # Jobs created at `until` have smaller ids.
        if after is None or after > self._wanted.filter.end_id:
            await self._remember(replace(self._so_far, exhausted=self._now))
            return
        self._chosen = await self._next(after)
        if not self._chosen.ids and self._chosen.last_id is not None:
            await self._remember(replace(self._so_far, after=str(self._chosen.last_id)))

    async def _next(self, after: UUID) -> Chosen:
        wanted = self._wanted
        if wanted.ids is not None:
            return Chosen([id for id in wanted.ids if id > after], None)
        if bulk.is_of_live(self._filter) and not self._so_far.is_crowded:
            live = await self._ctx.run(bulk.choose_live(self._filter, after))
            if live is not None:
                return live
            self._so_far = replace(self._so_far, is_crowded=True)
        return await self._ctx.run(bulk.choose(self._filter, after))

    async def _retry_locked(self) -> bool:
        """Try the jobs again that were locked; False if most of them still are."""
        before = self._so_far.locked
        self._so_far = replace(self._so_far, locked=[])
        for start in range(0, len(before), SLICE):
            await self._act([UUID(job_id) for job_id in before[start : start + SLICE]])
        return len(self._so_far.locked) < len(before) / 2

    async def _act(self, ids: Sequence[UUID]) -> None:
        """Act on jobs; on each half of them where the database refuses to change one of them."""
        try:
            await self._commit(ids)
        except StatementRefused as error:
            if len(ids) > 1:
                middle = len(ids) // 2
                await self._act(ids[:middle])
                await self._act(ids[middle:])
            else:
                said = [*self._so_far.errors, f"job {ids[0]}: {error}"][-MAX_ERRORS:]
                failed = self._so_far.failed + 1
                await self._remember(replace(self._after(ids), failed=failed, errors=said))

    async def _commit(self, ids: Sequence[UUID]) -> None:
        wanted = self._wanted
        async with self._ctx.transaction() as connection:
            run = partial(run_on, connection)
            locked = await run(bulk.lock(self._filter, ids))
            missing = sorted({*ids} - {job.id for job in locked})
            busy = await run(bulk.matching(self._filter, missing)) if missing else []
            done = await act(self._ctx, wanted, locked, run)
            after = self._after(ids)
            after = replace(
                after,
                done=after.done + done,
                skipped=after.skipped + len(ids) - len(busy) - done,
                locked=[*after.locked, *map(str, busy)],
            )
            if not await run(jobs.note([self._note(after)])):
                raise self._ctx.stale("bulk")
        self._so_far = after

    def _after(self, ids: Sequence[UUID]) -> BulkProgress:
        """Return the state after these jobs, whose results are not counted yet."""
        so_far = self._so_far
        after = max(so_far.after, str(ids[-1]))
        rate = self._wanted.rate
        paced = so_far.paced
        if rate is not None:
            paced = Pace(rate, paced).after(len(ids)).taken_until
        return replace(so_far, after=after, paced=paced)

    async def _remember(self, so_far: BulkProgress) -> None:
        """Write the checkpoint."""
        if not await self._ctx.run(jobs.note([self._note(so_far)])):
            raise self._ctx.stale("bulk")
        self._so_far = so_far

    def _note(self, so_far: BulkProgress) -> AttemptUpdate:
        percent, message = self._percent(so_far), self._message(so_far)
        text = encode(asdict(so_far))
        return AttemptUpdate(self._ctx.job_id, self._ctx.lease, percent, message, text)

    def _percent(self, so_far: BulkProgress) -> int:
        """Return how far it is: by count, or by the age of the jobs where the count is a bound."""
        wanted = self._wanted
        if wanted.precision != "at_least":
            return min(99, 100 * so_far.seen // max(1, wanted.count))
        first, after = (moment_of(UUID(place)) for place in (so_far.first, so_far.after))
        requested = moment_of(id_at(datetime.fromisoformat(so_far.requested_at)))
        return max(0, min(99, round(100 * (after - first) / max(1, requested - first))))

    def _message(self, so_far: BulkProgress) -> str:
        wanted = self._wanted
        bound = {"exact": "", "at_least": "at least ", "estimate": "about "}[wanted.precision]
        said = f"{so_far.done:,} of {bound}{wanted.count:,} {DONE[wanted.action]}"
        rest = {"skipped": so_far.skipped, "failed": so_far.failed, "locked": len(so_far.locked)}
        return ", ".join([said, *(f"{count:,} {what}" for what, count in rest.items() if count)])
