"""Claims: as many jobs as there is room for, from where the work stands, when there is any."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from forge.core.claims import Claims
from forge.core.errors import ForgeError
from forge.core.event import Events
from forge.core.job import Job
from forge.core.lanes import Lanes
from forge.core.run import NO_QUEUE, Run
from forge.store import jobs, schedules
from forge.store.jobs import Lane, Place
from forge.store.link import Link
from forge.store.waiting import within
from forge.store.workers import Registration
from forge.worker.acker import Acker
from forge.worker.ahead import LONGEST_WAIT, Ahead, Waiting
from forge.worker.recurrence import Recurrence
from forge.worker.runner import Runner
from forge.worker.serving import serves

# Where handlers take less than a trip to the database, the next jobs are fetched while these run,
# and as running: by the time the answer is here, slots are free.
IN_NO_TIME = 0.005
MOST_LANES_KNOWN = 10_000
OLDEST_FIRST = attrgetter("due", "id")


class Claimer:
    """Keeps the slots filled."""

    def __init__(
        self,
        links: Sequence[Link],
        worker: Registration,
        runner: Runner,
        acker: Acker,
        events: Events,
        *,
        batch_size: int,
        poll: Callable[[], float],
        told: Callable[[Sequence[UUID]], None],
        is_heard: Callable[[], bool],
        claims: Claims,
        release: Callable[[Sequence[Job]], None],
        recurrence: Recurrence | None = None,
    ) -> None:
        # More than one, so that a claim may be on its way while the disk still writes another.
        self._links = deque(links)
        self._worker = worker
        self._runner = runner
        self._acker = acker
        self._events = events
        self._batch_size = batch_size
        self._told = told
        self._poll = poll
        self._is_heard = is_heard
        self._claims = claims
        self._release = release
        self._recurrence = recurrence
        self._had_schedules = False
        self._slots = worker.max_concurrent
        self._lanes: Lanes[Lane] = Lanes(self._serves)
        self._lane_of: dict[tuple[Any, ...], int] = {}
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.ahead = Ahead()
        # Whether word of a lane's jobs comes by message.
        self.is_carried: Callable[[Lane], bool] = lambda lane: False
        self.stopped = asyncio.Event()

    def hint(self) -> None:
        """Something new may have come."""
        self._lanes.hint(self._loop.time())
        self._changed.set()

    def look_again(self) -> None:
        """There may be room where there was none."""
        self._changed.set()

    def slot_freed(self) -> None:
        """A slot is free: what was fetched ahead takes it at once."""
        if self.ahead:
            self._fill()
        self._changed.set()

    async def run(self) -> None:
        """Claim until told to stop."""
        pause = self._poll()
        while not self.stopped.is_set():
            self._changed.clear()
            try:
                if not await self._claim_once():
                    await within(self._changed, self._idle_for())
                pause = self._poll()
            except ForgeError as error:
                self._events.notice("warning", "claims wait for the database", error=str(error))
                await within(self.stopped, pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, 5)

    def stop(self) -> None:
        """Claim nothing more."""
        self.stopped.set()
        self._changed.set()

    async def _claim_once(self) -> bool:
        """Fill what room there is; False when there is none, or nothing to do."""
        ask = await self._ask()
        if ask is None:
            return False
        coming = deque([self._send(ask)])
        found_any, failure = ask.is_guess, None
        while coming:
            ask, claim, answer = coming.popleft()
            try:
                taken = await answer
            except ForgeError as error:
                taken, failure = [], error
                self._claims.lost_any = True
            while len(coming) < len(self._links) and not failure:
                if (following := self._ask_ahead(len(taken))) is None:
                    break
                coming.append(self._send(following))
            if coming:
                await asyncio.sleep(0)  # the questions leave before these jobs take the loop
            self._take(taken, ask.start, is_late=self._claims.is_late(claim, time.monotonic()))
            self._claims.end(claim)
            found_any |= bool(taken)
        if failure:
            raise failure
        # A lane may look due and give nothing, its jobs being locked by another's claim: then the
        # next look can wait.
        return found_any or bool(self._lanes.next())

    def _send(self, ask: "_Ask") -> "tuple[_Ask, int, asyncio.Future[list[Job]]]":
        self._links.rotate()
        answer = asyncio.ensure_future(self._fetch(ask, self._links[0]))
        return ask, self._claims.send(time.monotonic()), answer

    def has_room(self) -> bool:
        """Whether another job may be claimed now."""
        return not self.stopped.is_set() and self._room()[0] > 0 and self.may_claim()

    def is_full(self) -> bool:
        """Whether it goes on claiming and has no room for another job."""
        return not self.stopped.is_set() and not self.has_room()

    async def _ask(self) -> "_Ask | None":
        """Decide what to claim, after a look at where work stands when that is due."""
        room, start = self._room()
        if room <= 0 or not self.may_claim():
            return None
        limit = min(room, self._batch_size)
        if guess := self._of_one_table(self._lanes.guess()):
            return _Ask(guess, limit, start, is_guess=True)
        if self._lanes.survey_is_due(self._loop.time()):
            await self._survey()
        asked = self._of_one_table(self._lanes.next())
        return _Ask(asked, limit, start) if asked else None

    def _ask_ahead(self, just_taken: int) -> "_Ask | None":
        """Decide what to claim while these jobs run, where that takes them no time."""
        in_hand = self._runner.slots_taken + len(self.ahead) + just_taken
        is_wanted = just_taken and in_hand <= self._slots and self._wait() < IN_NO_TIME
        if not is_wanted or self.stopped.is_set() or not self.may_claim():
            return None
        if self._lanes.survey_is_due(self._loop.time()) or not (asked := self._lanes.next()):
            return None
        return _Ask(self._of_one_table(asked), self._batch_size, start=True)

    def _of_one_table(
        self, places: list[tuple[int, datetime, UUID]]
    ) -> list[tuple[int, datetime, UUID]]:
        """Let jobs and schedules that are equally urgent have their turns."""
        if self._recurrence is None or len(places) < 2:
            return places
        of_schedules = [place for place in places if self._is_recurring(place[0])]
        of_jobs = [place for place in places if not self._is_recurring(place[0])]
        self._had_schedules = bool(of_schedules) and not (self._had_schedules and of_jobs)
        return of_schedules if self._had_schedules else of_jobs

    def _is_recurring(self, lane: int) -> bool:
        return self._recurrence is not None and self._lanes.seen(lane).queue == NO_QUEUE

    def may_claim(self) -> bool:
        """Whether this worker is known to live, and its acks are not behind."""
        # What a worker claims while it counts as dead would be taken from it at once; and what has
        # ended but is not written would run again if it died, so that there must not be much of it.
        unwritten = self._acker.unwritten
        if self._recurrence is not None:
            unwritten += self._recurrence.concluder.unwritten
        return self._is_heard() and unwritten <= 2 * self._slots + self._batch_size

    async def _fetch(self, ask: "_Ask", link: Link) -> list[Job]:
        if self._is_recurring(ask.places[0][0]):
            return await self._fetch_runs(ask, link)
        worker = self._worker
        taken = await link.run(
            jobs.claim(
                [Place(*place) for place in ask.places],
                ask.limit,
                start=ask.start,
                worker=worker.id,
                incarnation=worker.incarnation,
                lane=self._lanes.seen(ask.places[0][0]) if len(ask.places) == 1 else None,
            )
        )
        taken.sort(key=OLDEST_FIRST)  # all of one claim are equally urgent
        self._lanes.took(ask.places, taken, ask.limit, self._lane_of_job)
        self._told([job.id for job in taken])
        return taken

    async def _fetch_runs(self, ask: "_Ask", link: Link) -> list[Job]:
        assert self._recurrence is not None
        taken = await link.run(
            schedules.claim(
                [Place(*place) for place in ask.places],
                ask.limit,
                worker=self._worker.id,
                incarnation=self._worker.incarnation,
                rules=self._recurrence.rules,
            )
        )
        taken.sort(key=OLDEST_FIRST)
        self._lanes.took(ask.places, taken, ask.limit, self._lane_of_job)
        return list(taken)

    def _take(self, taken: list[Job], start: bool, *, is_late: bool) -> None:
        if is_late or not self._is_heard():
            self._release(taken)  # some may be another's by now, and none may run twice
            return
        # Jobs that came by message meanwhile may have taken more than there was.
        room = max(self._slots - self._runner.slots_taken, 0) if start else 0
        for job in taken[:room]:
            self._runner.start(job)
        now = self._loop.time()
        self.ahead.extend(Waiting(job, now, start or isinstance(job, Run)) for job in taken[room:])
        self._fill()  # the slots may have become free while the claim was on its way

    def _fill(self) -> None:
        """Give what was fetched ahead the slots that are free."""
        while self.ahead and self._runner.slots_taken < self._slots and not self.stopped.is_set():
            job, _, is_started = self.ahead.popleft()
            if not is_started:
                self._acker.start(job)
            self._runner.start(job)

    async def _survey(self) -> None:
        began = time.perf_counter()
        found = await self._links[0].run(jobs.survey())
        if self._recurrence is not None:
            found += await self._links[0].run(schedules.survey())
        self._lanes.surveyed(found, self._loop.time(), time.perf_counter() - began)
        if len(self._lane_of) > MOST_LANES_KNOWN:
            self._lane_of.clear()
        self._lane_of |= {
            (lane.job_type, lane.queue, lane.worker_capability, lane.priority): lane.lane
            for lane in found
        }

    def _room(self) -> tuple[int, bool]:
        """How many jobs there is room for, and whether they start at once."""
        free = self._slots - self._runner.slots_taken
        wait = self._wait()
        if wait < IN_NO_TIME:
            return (self._batch_size if free >= len(self.ahead) else 0), True
        if free > 0:
            return free, True
        return (self._batch_size - len(self.ahead) if wait < LONGEST_WAIT else 0), False

    def _wait(self) -> float:
        """How long a job that is fetched ahead would wait for a slot, going by the last ones."""
        return self._runner.mean_seconds * self._batch_size / self._slots

    def _idle_for(self) -> float:
        pause = self._poll() * random.uniform(0.9, 1.1)
        # Without room it does not matter that a lane is due: a freed slot ends the pause.
        if self._lanes.next_due is not None and self.has_room():
            pause = min(pause, max(self._lanes.next_due - self._loop.time(), 0.001))
        return pause

    def _serves(self, lane: Lane) -> bool:
        return serves(self._worker, lane) and not self.is_carried(lane)

    def _lane_of_job(self, job: Any) -> int | None:
        return self._lane_of.get((job.type, job.queue, job.worker_capability, job.priority))


class _Ask(NamedTuple):
    """Where to claim, how many, and whether there are slots for them."""

    places: list[tuple[int, datetime, UUID]]
    limit: int
    start: bool
    is_guess: bool = False
