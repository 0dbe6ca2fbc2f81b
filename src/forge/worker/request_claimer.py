"""Claims of requests (cancel, delete, run now, reschedule, canary) while no slot is free.

A worker carries out requests whatever its slots, queues and capabilities are, and while it drains:
a cancel that waits for the job it is to cancel would never run.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from forge.core.claims import Claims
from forge.core.crew import crew_name
from forge.core.errors import ForgeError
from forge.core.job import Job
from forge.core.lanes import BEGINNING
from forge.requests import CANARY, QUEUE, REQUESTS, SHORT_REQUESTS
from forge.store import jobs
from forge.store.jobs import Place
from forge.store.link import Link
from forge.store.waiting import within
from forge.store.workers import Registration
from forge.worker.runner import Runner

# Requests that one worker carries out at a time, beside what its slots run.
ROOM = 10
# How often a worker without a free slot looks for requests that no notification announced.
INTERVAL = 1.0


class RequestClaimer:
    """Claims short requests whenever the claimer of ordinary jobs has no room for them."""

    def __init__(
        self,
        link: Link,
        worker: Registration,
        runner: Runner,
        claims: Claims,
        *,
        is_needed: Callable[[], bool],
        release: Callable[[Sequence[Job]], None],
    ) -> None:
        self._link = link
        self._worker = worker
        self._runner = runner
        self._claims = claims
        self._is_needed = is_needed
        self._release = release
        self._places: list[Place] = []
        self._hinted = asyncio.Event()
        self._stopped = asyncio.Event()

    def hint(self) -> None:
        """A request may have been dispatched."""
        self._hinted.set()

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopped.set()
        self._hinted.set()

    async def run(self) -> None:
        """Claim requests until stopped."""
        while not self._stopped.is_set():
            self._hinted.clear()
            try:
                found = self._is_needed() and await self._claim()
            except ForgeError:
                found = False  # the claimer of ordinary jobs reports that the database is away
            if not found:
                await within(self._hinted, INTERVAL)

    async def _claim(self) -> bool:
        """Start as many requests as there is room for; False when none waits."""
        room = ROOM - self._runner.requests_running
        if room <= 0:
            return False
        self._places = self._places or await self._lanes()
        claim = self._claims.send(time.monotonic())
        try:
            taken = await self._link.run(
                jobs.claim(
                    self._places,
                    room,
                    start=True,
                    worker=self._worker.id,
                    incarnation=self._worker.incarnation,
                )
            )
            if self._claims.is_late(claim, time.monotonic()):
                self._release(taken)
            else:
                for job in taken:
                    self._runner.start(job, takes_slot=False)
        except ForgeError:
            self._claims.lost_any = True
            raise
        finally:
            self._claims.end(claim)
        return len(taken) == room

    async def _lanes(self) -> list[Place]:
        mine = crew_name(self._worker.capabilities, self._worker.queues)
        named = [
            (name, QUEUE, mine if name == CANARY else None, REQUESTS[name].defaults.priority)
            for name in SHORT_REQUESTS
        ]
        found = await self._link.run(jobs.lanes_of(named))
        return [Place(lane, *BEGINNING) for lane in found]
