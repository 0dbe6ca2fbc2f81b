"""forge.reprocess: makes jobs of dead letters, one slice a second, on any worker.

Each slice is an attempt of its own and frees its slot afterwards. A slice writes its plan into the
checkpoint first, and the next one reads its effect back from the database: a worker that is killed
at any point loses nothing and does nothing twice.
"""

import time
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from forge.core.job import BUILTIN_QUEUE
from forge.core.lifecycle import Status
from forge.core.pace import Pace
from forge.core.payload import encode
from forge.core.signals import Snooze
from forge.dead_letters.bulk import ReprocessRequest
from forge.definitions.catalog import RunStatement
from forge.definitions.job import job
from forge.store import audit, dead_letters, jobs
from forge.store.borrowed import run_on
from forge.store.jobs import AttemptUpdate
from forge.store.notify import WAKE, send

if TYPE_CHECKING:
    from forge.jobs.context import JobContext

REPROCESS = "forge.reprocess"
# Dead letters in one statement, as many as can be due at the highest rate, and statements in one
# slice. An input that was written in SQL can have any rate.
BATCH = 1250
MAX_BATCHES = 10
# Jobs that are looked at until they end, to notice when they fail again.
MAX_WATCHED = 200
FAILED = {Status.FAILED, Status.DEAD_LETTER}


@dataclass
class Progress:
    """The state that one slice leaves for the next."""

    began: float
    after: int = 0
    canaries: list[int] = field(default_factory=list)
    batch: list[int] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    reprocessed: int = 0
    skipped: int = 0
    succeeded: int = 0
    failed_again: int = 0
    cancelled: int = 0
    deleted: int = 0
    # until when the dead letters that were due at the wanted rate have been taken
    paced: float = 0.0
    # when all canaries had completed; None before
    released: float | None = None
    # when no dead letter was left; None before
    exhausted: float | None = None
    # what it returns, once its end is audited; None before
    report: dict[str, Any] | None = None


@job(name=REPROCESS, queue=BUILTIN_QUEUE, priority="high", dead_letter=False, max_attempts=20)
async def reprocess(ctx: "JobContext", input: ReprocessRequest) -> dict[str, Any]:
    """Make new jobs of dead letters, one slice of them."""
    if ctx.tenant_id is not None:
        # The database has verified the job's tenant, but not the one in the input.
        input = input.model_copy(update={"tenant_id": ctx.tenant_id})
    so_far = Progress(**(ctx.checkpoint or {"began": time.time()}))
    if so_far.report is not None:
        return so_far.report
    work = Reprocessing(ctx, input, so_far)
    for _ in range(MAX_BATCHES):
        await work.settle()
        await work.watch()
        if (reason := work.reason_to_stop()) is not None:
            return await work.end("job_dlq_bulk_reprocess_stopped", reason)
        if work.is_done:
            return await work.end("job_dlq_bulk_reprocess_finished", None)
        if work.awaits_canaries or not (due := work.due()):
            break
        await work.advance(due)
    raise await work.pause()


class Reprocessing:
    """One slice."""

    def __init__(self, ctx: "JobContext", wanted: ReprocessRequest, so_far: Progress) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._so_far = so_far
        # One moment for the whole slice: what falls due meanwhile is the next one's.
        self._now = time.time()
        self._actor = ctx.auth.actor

    async def settle(self) -> None:
        """Read back the effect of the last slice, and finish what it left undone."""
        so_far = self._so_far
        if not so_far.batch:
            return
        found = await self._ctx.run(dead_letters.outcomes(so_far.batch))
        ours = [one.dlq_id for one in found if one.request_id == self._ctx.job_id]
        left = [one.dlq_id for one in found if one.status == "pending_review"]
        if left:
            ours += await self._reprocess(left)
            so_far.paced = self._now
        lost = sorted({one.dlq_id for one in found} - set(ours))
        if lost:
            await self._audit(
                "job_dlq_reprocess_failed", lost, reason="it was reviewed in the meantime"
            )
        so_far.reprocessed += len(ours)
        so_far.skipped += len(so_far.batch) - len(ours)
        so_far.after = max(so_far.batch)
        so_far.watched += ours[: max(0, MAX_WATCHED - len(so_far.watched))]
        if so_far.released is None:
            so_far.canaries = [*so_far.canaries, *ours]
        so_far.batch = []

    async def watch(self) -> None:
        """Read which watched jobs have ended, and how."""
        so_far = self._so_far
        going = set()
        found = await self._ctx.run(dead_letters.outcomes(so_far.watched))
        so_far.deleted += len(so_far.watched) - len(found)
        for one in found:
            if one.job_status is None:
                so_far.deleted += 1
            elif one.job_status == Status.CANCELLED:
                so_far.cancelled += 1
            elif one.has_failed or one.job_status in FAILED:
                # Its next attempts are not waited for: they may be hours away.
                so_far.failed_again += 1
            elif one.job_status == Status.COMPLETED:
                so_far.succeeded += 1
            else:
                going.add(one.dlq_id)
        so_far.watched = [dlq_id for dlq_id in so_far.watched if dlq_id in going]

    def reason_to_stop(self) -> str | None:
        so_far, wanted = self._so_far, self._wanted
        if so_far.released is None and so_far.failed_again:
            return "a canary failed again"
        if so_far.released is None and so_far.cancelled:
            return "a canary was cancelled"
        if so_far.released is None and so_far.deleted:
            return "a canary was deleted before its end was seen"
        if so_far.failed_again >= wanted.max_failures:
            return f"{so_far.failed_again} jobs failed again"
        waited = self._now - so_far.began
        if self.awaits_canaries and waited > wanted.canary_seconds:
            return f"the canaries did not complete within {wanted.canary_seconds:g} s"
        return None

    @property
    def is_done(self) -> bool:
        """Whether all are made and those that are watched have ended, or had time enough to."""
        so_far = self._so_far
        if so_far.exhausted is None:
            return False
        return not so_far.watched or self._now - so_far.exhausted > self._wanted.canary_seconds

    @property
    def awaits_canaries(self) -> bool:
        so_far = self._so_far
        return so_far.released is None and bool(so_far.canaries) and bool(so_far.watched)

    def due(self) -> int:
        """How many are due by now at the wanted rate, the canaries not counted."""
        so_far, wanted = self._so_far, self._wanted
        if so_far.released is None and (so_far.canaries or not wanted.canary):
            so_far.released = self._now
            so_far.paced = self._now - self._pace.pause
        if so_far.released is None:
            return wanted.canary
        if so_far.exhausted is not None:
            return 0
        pace = self._pace.caught_up(self._now)
        so_far.paced = pace.taken_until
        return min(BATCH, pace.due(self._now))

    async def advance(self, count: int) -> None:
        """Take the next dead letters, or find that there are none."""
        so_far, wanted = self._so_far, self._wanted
        chosen = await self._ctx.run(
            dead_letters.choose(wanted.filter, after=so_far.after, until=wanted.until, limit=count)
        )
        if not chosen:
            so_far.exhausted = self._now
            return
        so_far.batch = chosen
        so_far.paced = self._pace.after(len(chosen)).taken_until
        await self._remember()
        await self._reprocess(chosen)

    async def pause(self) -> Snooze:
        """Write the checkpoint, and return when to continue."""
        await self._remember()
        so_far, pace = self._so_far, self._pace
        if so_far.released is not None and so_far.exhausted is None:
            return Snooze(pace.delay(time.time()))
        return Snooze(timedelta(seconds=pace.pause))

    @property
    def _pace(self) -> Pace:
        return Pace(self._wanted.rate, self._so_far.paced)

    async def end(self, event: str, reason: str | None) -> dict[str, Any]:
        """Audit the end once, also if the result is lost, and return the report."""
        so_far, wanted = self._so_far, self._wanted
        output = {
            "reprocessed": so_far.reprocessed,
            "skipped": so_far.skipped,
            "succeeded": so_far.succeeded,
            "failed_again": so_far.failed_again,
            "cancelled": so_far.cancelled,
            "deleted": so_far.deleted,
            "unfinished": len(so_far.watched),
            "stopped": reason,
        }
        entry = audit.add(
            event, self._actor, wanted.tenant_id, self._ctx.job_id, wanted.notes, encode(output)
        )
        so_far.report = output
        async with self._ctx.transaction() as connection:
            run = partial(run_on, connection)
            await run(jobs.limit_locks())
            await run(entry)
            await self._remember(run)
        return output

    async def _reprocess(self, dlq_ids: list[int]) -> list[int]:
        await self._audit("job_dlq_reprocess_requested", dlq_ids)
        made = await self._ctx.run(
            dead_letters.reprocess(
                dlq_ids,
                self._ctx.tenant_id,
                self._actor,
                self._wanted.notes,
                priority=self._wanted.priority,
                request_id=self._ctx.job_id,
            )
        )
        await self._ctx.run(send(WAKE))
        return [one.dlq_id for one in made]

    async def _audit(self, event: str, dlq_ids: list[int], **detail: Any) -> None:
        text = encode({"request_id": str(self._ctx.job_id), **detail})
        await self._ctx.run(
            dead_letters.audit(event, dlq_ids, self._actor, self._wanted.notes, text)
        )

    async def _remember(self, run: RunStatement | None = None) -> None:
        """Write the checkpoint now: the next step must not happen without it."""
        so_far, wanted = self._so_far, self._wanted
        done = so_far.reprocessed + so_far.skipped
        note = AttemptUpdate(
            self._ctx.job_id,
            self._ctx.lease,
            min(99, 100 * done // max(1, wanted.letters)),
            f"{done} of {wanted.letters} reprocessed, {so_far.failed_again} failed again",
            encode(asdict(so_far)),
        )
        if not await (run or self._ctx.run)(jobs.note([note])):
            raise self._ctx.stale("reprocess")
