"""Comparing what this worker holds with what the database says it holds."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.errors import ForgeError
from forge.core.workers.lanes import Claims
from forge.store import jobs
from forge.store.connection.link import Link
from forge.worker.held_work import HeldJob, HeldWork
from forge.worker.job_source import JobSource
from forge.worker.work_source import WorkSource

# A worker that holds nothing and lost nothing compares this often, in seconds: a claim that it gave
# up on may have waited in the server, or a row may have been written by hand.
LONGEST_PAUSE = 10.0
# Seconds between two reads of rechecked jobs, however many notifications arrive.
RECHECK_PAUSE = 0.05
RECHECK_BATCH = 1000


class Discrepancy(NamedTuple):
    """Something that this worker and the database disagree about."""

    source: WorkSource[Any]
    job_id: UUID
    lease: int
    # "taken" where the worker holds what is no longer its own; otherwise it does not know of it.
    what: str


class Reconciler:
    """Finds jobs whose claim was answered by a lost message, and jobs taken from this worker.

    A job may be in between, just claimed or just settled: only what is found twice counts, and
    nothing that a claim under way may bring.
    """

    interval = 3.0

    def __init__(
        self, link: Link, held: HeldWork, sources: Sequence[WorkSource[Any]], claims: Claims
    ) -> None:
        self._link = link
        self._held = held
        self._sources = sources
        self._claims = claims
        self._suspicions: set[Discrepancy] = set()
        self._looked_at = 0.0

    async def reconcile(self) -> None:
        """Compare once; act on what the last comparison had found, too."""
        held = self._held.all()
        is_calm = not held and not self._claims.lost_any and not self._suspicions
        if is_calm and monotonic() - self._looked_at < LONGEST_PAUSE:
            return
        is_unwritten = any(source.acker.unwritten for source in self._sources)
        is_explained = self._claims.any_since(self._looked_at) or is_unwritten
        was_lost, self._claims.lost_any = self._claims.lost_any, False
        try:
            findings = await self._findings(held)
        except ForgeError:
            self._claims.lost_any |= was_lost
            raise
        self._looked_at = monotonic()
        for finding in findings & self._suspicions:
            if finding.what == "taken":
                self._held.let_go(finding.job_id, finding.lease)
            elif not is_explained:
                await self._give_back(finding)
        self._suspicions = findings
        self._claims.lost_any |= was_lost and bool(findings)

    async def give_back_all(self) -> None:
        """Release everything that the database has in the name of this worker, which ends."""
        for finding in await self._findings([]):
            await self._give_back(finding)

    async def _findings(self, held: Sequence[HeldJob]) -> set[Discrepancy]:
        findings: set[Discrepancy] = set()
        for source in self._sources:
            own = [(job.job_id, job.lease) for job in held if job.source is source]
            for row in await self._link.run(source.reconcile(own)):
                findings.add(Discrepancy(source, row["id"], row["lease"], row["finding"]))
        return findings

    async def _give_back(self, finding: Discrepancy) -> None:
        await self._link.run(finding.source.give_back(finding.job_id, finding.lease))


class Recheck:
    """Reads the rows of jobs that may be another worker's, and stops the attempts at them.

    Any login can send the notification that names a job: the row decides.
    """

    def __init__(self, link: Link, held: HeldWork, source: JobSource) -> None:
        self._link = link
        self._held = held
        self._source = source
        self._doubtful: set[tuple[UUID, int]] = set()
        self._reading: asyncio.Task[None] | None = None

    def add(self, job_id: UUID, lease: int) -> None:
        """Recheck a job if this worker holds it; others cost nothing."""
        if not self._held.holds(self._source, job_id, lease):
            return
        self._doubtful.add((job_id, lease))
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read())

    def add_all(self) -> None:
        """Recheck every job that this worker holds."""
        for _, job_id, lease in self._held.all():
            self.add(job_id, lease)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read(self) -> None:
        while self._doubtful:
            count = min(len(self._doubtful), RECHECK_BATCH)
            asked = [self._doubtful.pop() for _ in range(count)]
            with suppress(ForgeError):  # the reconciler compares every attempt before long
                for job_id, lease in await self._link.run(jobs.taken(asked)):
                    self._held.let_go(job_id, lease)
            await asyncio.sleep(RECHECK_PAUSE)
