"""Claims of built-in jobs (cancel, delete, run now, reschedule, canary) while no slot is free.

A worker runs them whatever its slots, queues and capabilities are, while it drains, and when it was
drained: a cancel that waited for the job that it cancels would never run.
"""

import asyncio
import time

from forge.builtin_jobs.definitions import REQUESTS, SHORT_REQUESTS
from forge.core.errors import ForgeError
from forge.core.job import BUILTIN_QUEUE, CANARY
from forge.core.workers.lanes import BEGINNING, worker_group_name
from forge.store import jobs
from forge.store.connection.link import Link
from forge.store.connection.waiting import within
from forge.store.jobs import LaneCursor
from forge.worker.claimer import Claimer
from forge.worker.job_source import JobSource
from forge.worker.loops import WorkSignals
from forge.worker.runner import Runner

# Built-in jobs that one worker runs at a time, beside what its slots run.
ROOM = 10
# How often a worker without a free slot looks for built-in jobs that no notification announced.
INTERVAL = 1.0


class BuiltinClaimer:
    """Claims short built-in jobs whenever the claimer of ordinary jobs has no room for them."""

    def __init__(
        self,
        link: Link,
        source: JobSource,
        runner: Runner,
        claimer: Claimer,
        signals: WorkSignals,
        draining: asyncio.Event,
    ) -> None:
        self._link = link
        self._source = source
        self._runner = runner
        self._claimer = claimer
        self._claims = claimer.limits.claims
        self._woken = signals.builtin_jobs
        self._draining = draining
        self._places: dict[str, LaneCursor] = {}
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopped.set()
        self._woken.set()

    async def run(self) -> None:
        """Claim until stopped."""
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                found = self._is_needed() and await self._claim()
            except ForgeError:
                found = False  # the other claimer reports that the database is away
            if not found:
                await within(self._woken, INTERVAL)

    def _is_needed(self) -> bool:
        # A claimer that stopped for another reason is a fault, which canaries have to show.
        is_heard = self._claimer.limits.liveness.is_heard()
        return is_heard and (self._draining.is_set() or self._claimer.is_full())

    async def _claim(self) -> bool:
        """Start as many as there is room for; False when none waits."""
        room = ROOM - self._runner.held.beside_slots
        if room <= 0:
            return False
        self._places = self._places or await self._lanes()
        # A drained worker consumes no jobs, which is what canaries measure.
        is_drained = self._runner.held.is_drained
        names = [name for name in self._places if name != CANARY or not is_drained]
        places = [self._places[name] for name in names]
        claim = self._claims.send(time.monotonic())
        try:
            taken = await self._link.run(self._source.claim(places, room, start=True, lanes=()))
            is_late = self._claims.is_late(claim, time.monotonic())
            for job in taken:
                if is_late:
                    self._source.release(job)
                else:
                    self._runner.start(job, self._source, takes_slot=False)
        except ForgeError:
            self._claims.lost_any = True
            raise
        finally:
            self._claims.end(claim)
        return len(taken) == room

    async def _lanes(self) -> dict[str, LaneCursor]:
        worker = self._source.worker
        mine = worker_group_name(worker.capabilities, worker.queues)
        named = [
            (
                name,
                BUILTIN_QUEUE,
                mine if name == CANARY else None,
                REQUESTS[name].job_type.priority,
            )
            for name in SHORT_REQUESTS
        ]
        found = await self._link.run(jobs.lanes_of(named))
        cursors = [LaneCursor(lane, *BEGINNING) for lane in found]
        return dict(zip(SHORT_REQUESTS, cursors, strict=True))
