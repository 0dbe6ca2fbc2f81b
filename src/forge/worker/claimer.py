"""Claims as many jobs as there is room for, when there is work."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from forge.config.settings import WorkerConfig
from forge.core.errors import ForgeError
from forge.core.events import Events
from forge.core.job import Job
from forge.core.workers.lanes import Claims
from forge.store.connection.waiting import Backoff, within
from forge.transports.transport import Transport
from forge.worker.held_work import LONGEST_WAIT, HeldWork
from forge.worker.liveness import Liveness
from forge.worker.loops import WorkSignals
from forge.worker.runner import Runner
from forge.worker.work_finder import ClaimRequest, WorkFinder
from forge.worker.work_source import WorkSource

# Where handlers take less than this, in seconds, the next jobs are fetched while these run, and as
# running: by the time the answer arrives, slots are free.
INSTANT = 0.005


class ClaimLimits:
    """How many jobs a worker may claim now."""

    def __init__(
        self,
        held: HeldWork,
        liveness: Liveness,
        claims: Claims,
        sources: Sequence[WorkSource[Any]],
        batch_size: int,
    ) -> None:
        self.held = held
        self.liveness = liveness
        self.claims = claims
        self.batch_size = batch_size
        self._sources = sources

    def may_claim(self) -> bool:
        """Whether this worker is alive to others, not drained, and its acks are not behind."""
        # Others would take at once what a worker claims that counts as dead. And what has ended but
        # is not written would run again if the worker died: there must not be much of it.
        room = 2 * self.held.slots + self.batch_size
        for source in self._sources:
            room -= source.acker.unwritten
        return room >= 0 and self.liveness.is_heard() and not self.held.is_drained

    def room(self) -> tuple[int, bool]:
        """Return how many jobs there is room for, and whether they start at once."""
        free, ahead = self.held.slots - self.held.slots_taken, len(self.held.ahead)
        wait = self._wait()
        if wait < INSTANT:
            return (self.batch_size if free >= ahead else 0), True
        if free > 0:
            return free, True
        return (self.batch_size - ahead if wait < LONGEST_WAIT else 0), False

    def may_claim_more(self, just_taken: int) -> bool:
        """Whether to send another claim before these jobs run, since they take no time."""
        in_hand = self.held.slots_taken + len(self.held.ahead) + just_taken
        is_wanted = just_taken and in_hand <= self.held.slots and self._wait() < INSTANT
        return bool(is_wanted) and self.may_claim()

    def _wait(self) -> float:
        """Return how long a job that is fetched ahead is expected to wait for a slot."""
        return self.held.mean_seconds * self.batch_size / self.held.slots


class PollInterval:
    """How often a worker looks for work without being woken."""

    def __init__(self, settings: WorkerConfig, transport: Transport, liveness: Liveness) -> None:
        self._often = settings.poll_interval.total_seconds()
        self._rarely = settings.idle_poll_interval.total_seconds()
        self._transport = transport
        self._liveness = liveness

    def seconds(self) -> float:
        """Poll rarely only while notifications arrive, and the worker may claim."""
        is_calm = self._transport.is_listening() and self._liveness.is_heard()
        return self._rarely if is_calm else self._often


class Claimer:
    """Keeps the slots filled."""

    def __init__(
        self,
        finder: WorkFinder,
        runner: Runner,
        limits: ClaimLimits,
        poll: PollInterval,
        signals: WorkSignals,
        events: Events,
    ) -> None:
        self._finder = finder
        self._runner = runner
        self._poll = poll
        self._signals = signals
        self._events = events
        self._changed = signals.room_changed.event()
        self._loop = asyncio.get_running_loop()
        self.limits = limits
        self.stopped = asyncio.Event()

    def wake(self, *, for_builtin_jobs: bool = False) -> None:
        """Look for work soon: there may be something new."""
        self._finder.lanes.notify(self._loop.time())
        self._changed.set()
        if for_builtin_jobs:
            self._signals.builtin_jobs.set()

    async def run(self) -> None:
        """Claim until stopped."""
        backoff = Backoff()
        while not self.stopped.is_set():
            self._changed.clear()
            try:
                if not await self._claim_once():
                    await within(self._changed, self._idle_for())
                backoff.reset()
            except ForgeError as error:
                self._events.notice("warning", "claims wait for the database", error=str(error))
                await within(self.stopped, backoff.next())

    def stop(self) -> None:
        """Claim nothing more, and start none of the jobs that wait for a slot."""
        self.stopped.set()
        self.limits.held.is_closed = True
        self._changed.set()

    def has_room(self) -> bool:
        """Whether another job may be claimed now."""
        limits = self.limits
        return not self.stopped.is_set() and limits.room()[0] > 0 and limits.may_claim()

    def is_full(self) -> bool:
        """Whether it goes on claiming and has no room for another job."""
        return not self.stopped.is_set() and not self.has_room()

    async def _claim_once(self) -> bool:
        """Fill what room there is; False when there is none, or nothing to do."""
        request = await self._request()
        if request is None:
            return False
        claims = self.limits.claims
        coming = deque([self._send(request)])
        found_any, failure = request.is_guess, None
        while coming:
            request, claim, answer = coming.popleft()
            try:
                taken = await answer
            except ForgeError as error:
                taken, failure = [], error
                claims.lost_any = True
            while len(coming) < self._finder.most_claims and not failure:
                if (following := self._request_more(len(taken))) is None:
                    break
                coming.append(self._send(following))
            if coming:
                await asyncio.sleep(0)  # the claims leave before these jobs take the loop
            is_late = claims.is_late(claim, time.monotonic())
            self._take(taken, request.source, start=request.start, is_late=is_late)
            claims.end(claim)
            found_any |= bool(taken)
        if failure:
            raise failure
        # A lane may look due and give nothing because another claim has locked its jobs: then the
        # next look can wait.
        return found_any or bool(self._finder.lanes.next())

    def _send(self, request: ClaimRequest) -> "tuple[ClaimRequest, int, asyncio.Future[list[Job]]]":
        answer = asyncio.ensure_future(self._finder.claim(request, self._finder.next_link()))
        return request, self.limits.claims.send(time.monotonic()), answer

    async def _request(self) -> ClaimRequest | None:
        """Decide what to claim, if there is room."""
        room, start = self.limits.room()
        if room <= 0 or not self.limits.may_claim():
            return None
        limit = min(room, self.limits.batch_size)
        return await self._finder.request(limit, start=start)

    def _request_more(self, just_taken: int) -> ClaimRequest | None:
        """Decide what to claim while these jobs run, where they take no time."""
        if self.stopped.is_set() or not self.limits.may_claim_more(just_taken):
            return None
        return self._finder.request_more(self.limits.batch_size)

    def _take(
        self, taken: list[Job], source: WorkSource[Any], *, start: bool, is_late: bool
    ) -> None:
        limits = self.limits
        if is_late or not limits.liveness.is_heard() or limits.held.is_drained:
            for job in taken:  # another worker may own some by now, and none may run twice
                source.release(job)
            return
        self._runner.take(taken, source, is_started=start)

    def _idle_for(self) -> float:
        pause = self._poll.seconds() * random.uniform(0.9, 1.1)
        # Without room it does not matter that a lane is due: a freed slot ends the pause.
        next_due = self._finder.lanes.next_due
        if next_due is not None and self.has_room():
            pause = min(pause, max(next_due - self._loop.time(), 0.001))
        return pause
