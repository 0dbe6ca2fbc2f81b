"""What forge.bulk does with the jobs of one slice, in the transaction that has locked them."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from forge.core.bulk import BulkAction
from forge.core.lifecycle import OWNED, Status
from forge.core.payload import encode
from forge.definitions.catalog import RunStatement
from forge.jobs.bulk import BulkRequest
from forge.store import jobs
from forge.store.bulk import Locked
from forge.store.jobs import RerunChanges
from forge.store.notify import (
    CHANGES,
    MAX_IDS,
    WAKE,
    attempt_payload,
    changes_payload,
    send,
    worker_channel,
)
from forge.store.statement import Rows

if TYPE_CHECKING:
    from forge.jobs.context import JobContext


async def act(
    ctx: "JobContext", wanted: BulkRequest, locked: Sequence[Locked], run: RunStatement
) -> int:
    """Act on the jobs, notify workers and watchers, and return how many were changed."""
    slice = BulkSlice(ctx, wanted, run)
    match wanted.action:
        case BulkAction.CANCEL:
            changed = await slice.cancel([job.id for job in locked])
        case BulkAction.DELETE:
            changed = await slice.delete(locked)
        case BulkAction.RUN_NOW:
            changed = await slice.run_now([job.id for job in locked if not job.is_due])
        case BulkAction.RERUN:
            changed = await slice.rerun([job.id for job in locked])
        case BulkAction.REPRIORITISE | BulkAction.MOVE:
            changed = await slice.move([job.id for job in locked])
    named = sorted(changed)
    # The request itself has changed, too. Without names every watcher would read its jobs again.
    step = MAX_IDS - 1
    for start in range(0, len(named) or 1, step):
        payload = changes_payload({ctx.job_id, *named[start : start + step]})
        await run(send(CHANGES, payload))
    return len(changed)


class BulkSlice:
    """The actions on one slice; each returns the jobs that it changed."""

    def __init__(self, ctx: "JobContext", wanted: BulkRequest, run: RunStatement) -> None:
        self._wanted = wanted
        self._run = run
        self._request = ctx.job_id
        self._who = (ctx.tenant_id, wanted.reason, ctx.auth.actor)
        # The auth of the jobs that are run again, which the database has verified as it has the
        # tenant; without one they keep that of the old jobs.
        self._auth = {name: value for name, value in ctx.auth.items() if name != "actor"}

    async def cancel(self, ids: Sequence[UUID]) -> Collection[UUID]:
        found = await self._run(jobs.cancel(ids, *self._who, request=self._request))
        for row in found:
            if row["was"] in OWNED:
                over = attempt_payload(row["id"], row["lease"])
                await self._run(send(worker_channel(row["worker_id"]), over))
        return _ids(found)

    async def delete(self, locked: Sequence[Locked]) -> Collection[UUID]:
        """Cancel those that are pending, give up those that wait for a retry, erase the rest."""
        pending = [job.id for job in locked if job.status is Status.PENDING]
        retry = [job.id for job in locked if job.status is Status.RETRY]
        final = [job.id for job in locked if job.status.is_final]
        cancelled = await self.cancel(pending)
        given_up = await self._run(jobs.give_up(retry, *self._who, request=self._request))
        erased = await self._run(jobs.erase(final, *self._who, request=self._request))
        return [*cancelled, *_ids(given_up), *_ids(erased)]

    async def run_now(self, ids: Sequence[UUID]) -> Collection[UUID]:
        moved = await self._run(jobs.reschedule(ids, *self._who, request=self._request))
        await self._run(send(WAKE))
        return _ids(moved)

    async def move(self, ids: Sequence[UUID]) -> Collection[UUID]:
        """Move the jobs to another priority or queue."""
        wanted, request = self._wanted, self._request
        if wanted.priority is not None:
            move = jobs.reprioritise(ids, *self._who, priority=wanted.priority, request=request)
        else:
            assert wanted.queue is not None
            move = jobs.move(ids, *self._who, queue=wanted.queue, request=request)
        moved = await self._run(move)
        await self._run(send(WAKE))
        return _ids(moved)

    async def rerun(self, ids: Sequence[UUID]) -> Collection[UUID]:
        auth = encode(self._auth, what="auth") if self._auth else None
        changes = RerunChanges(priority=self._wanted.priority, queue=self._wanted.queue, auth=auth)
        made = await self._run(jobs.rerun(ids, *self._who, changes, request=self._request))
        await self._run(send(WAKE))
        return [job.id for job in made]


def _ids(found: Rows) -> list[UUID]:
    return [row["id"] for row in found]
