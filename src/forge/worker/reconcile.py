"""Comparing what this worker holds with what the database says it holds."""

from collections.abc import Callable, Sequence
from time import monotonic
from uuid import UUID

from forge.core.claims import Claims
from forge.core.errors import ForgeError
from forge.core.job import Job
from forge.core.outcome import released
from forge.core.run import Run
from forge.store import jobs, schedules
from forge.store.link import Link
from forge.store.workers import Registration
from forge.worker.claimer import Claimer
from forge.worker.runner import Runner

# A worker that holds nothing and lost nothing looks all the same: a claim that it gave up on may
# have been waiting in the server, or a row been written by hand.
LONGEST_PAUSE = 10.0
# What schedules/reconcile calls a run that its worker does not know.
UNKNOWN_RUN = "unknown run"


class Reconciler:
    """Finds jobs that were claimed in an answer that got lost, and those taken from this worker.

    A job may be found on its way, just claimed or just settled: only what is found twice counts,
    and nothing that an answer to come may bring.
    """

    interval = 3.0

    def __init__(
        self,
        link: Link,
        worker: Registration,
        runner: Runner,
        claimer: Claimer,
        claims: Claims,
        let_go: Callable[[UUID, int], None],
        is_unwritten: Callable[[], bool],
    ) -> None:
        self._link = link
        self._worker = worker
        self._runner = runner
        self._claimer = claimer
        self._claims = claims
        self._let_go = let_go
        self._is_unwritten = is_unwritten
        self._suspicions: set[tuple[UUID, int, str]] = set()
        self._looked_at = 0.0

    async def reconcile(self) -> None:
        """Look once; act on what the last look had found already."""
        held = self.held()
        is_calm = not held and not self._claims.lost_any and not self._suspicions
        if is_calm and monotonic() - self._looked_at < LONGEST_PAUSE:
            return
        is_explained = self._claims.any_since(self._looked_at) or self._is_unwritten()
        was_lost, self._claims.lost_any = self._claims.lost_any, False
        try:
            findings = await self._findings(held)
        except ForgeError:
            self._claims.lost_any |= was_lost
            raise
        self._looked_at = monotonic()
        for job_id, lease, finding in findings & self._suspicions:
            if finding == "taken":
                self._let_go(job_id, lease)
            elif not is_explained:
                await self._give_back(job_id, lease, finding)
        self._suspicions = findings
        self._claims.lost_any |= was_lost and bool(findings)

    async def give_back_all(self) -> None:
        """At the end of the worker: whatever is still in its name, it has forgotten."""
        for job_id, lease, finding in await self._findings([]):
            await self._give_back(job_id, lease, finding)

    async def _findings(self, held: Sequence[Job]) -> set[tuple[UUID, int, str]]:
        worker, incarnation = self._worker.id, self._worker.incarnation
        own = [(job.id, job.lease) for job in held if not isinstance(job, Run)]
        found = list(await self._link.run(jobs.reconcile(worker, incarnation, own)))
        if self._worker.schedule_types:
            runs = [(job.id, job.lease) for job in held if isinstance(job, Run)]
            found += await self._link.run(schedules.reconcile(worker, incarnation, runs))
        return {(row["id"], row["lease"], row["finding"]) for row in found}

    async def _give_back(self, job_id: UUID, lease: int, finding: str) -> None:
        if finding == UNKNOWN_RUN:
            await self._link.run(schedules.release([(job_id, lease)]))
            return
        await self._link.run(jobs.settle([released(job_id, lease)]))

    def held(self) -> list[Job]:
        """Return every job and run in this worker's hands."""
        return [
            *(attempt.job for attempt in self._runner.running.values()),
            *self._claimer.ahead.jobs,
        ]
