"""Where a worker claims next: the lanes that have work for it, and how far each is taken."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from forge.builtin_jobs.definitions import REQUESTS
from forge.core.job import Job
from forge.core.workers.lanes import Lanes
from forge.operations.serving import serves
from forge.store.connection.link import Link
from forge.store.jobs import Lane, LaneCursor
from forge.store.workers import Registration
from forge.transports.transport import Transport
from forge.worker.work_source import WorkSource

MAX_LANES_KNOWN = 10_000
OLDEST_FIRST = attrgetter("due", "id")
# A lane, and how far its jobs are known to be taken.
Place = tuple[int, datetime, UUID]


class ClaimRequest(NamedTuple):
    """Where to claim, how many, and whether there are slots for them."""

    source: WorkSource[Any]
    places: list[Place]
    limit: int
    start: bool
    is_guess: bool = False


class WorkFinder:
    """Knows the lanes of all sources, and sends the claims."""

    def __init__(
        self,
        links: Sequence[Link],
        worker: Registration,
        sources: Sequence[WorkSource[Any]],
        transport: Transport,
    ) -> None:
        # More than one, so that a claim may be under way while the disk still writes another.
        self._links = deque(links)
        self._worker = worker
        self._sources = sources
        self._transport = transport
        # The source that the last claim was sent to when several had work.
        self._last_source = sources[0]
        self._loop = asyncio.get_running_loop()
        self._lane_of: dict[tuple[Any, ...], int] = {}
        self.lanes: Lanes[Lane] = Lanes(self._serves)

    @property
    def most_claims(self) -> int:
        """How many claims may be under way at once."""
        return len(self._links)

    async def request(self, limit: int, *, start: bool) -> ClaimRequest | None:
        """Decide what to claim, after a survey of the lanes when one is due."""
        if guess := self.lanes.guess():
            return ClaimRequest(*self._of_one_source(guess), limit, start, is_guess=True)
        if self.lanes.survey_is_due(self._loop.time()):
            await self._survey()
        places = self.lanes.next()
        return ClaimRequest(*self._of_one_source(places), limit, start) if places else None

    def request_more(self, limit: int) -> ClaimRequest | None:
        """Decide what to claim while other claims are under way; None when a survey is due."""
        if self.lanes.survey_is_due(self._loop.time()) or not (places := self.lanes.next()):
            return None
        return ClaimRequest(*self._of_one_source(places), limit, start=True)

    def next_link(self) -> Link:
        """Return the link for the next claim."""
        self._links.rotate()
        return self._links[0]

    async def claim(self, request: ClaimRequest, link: Link) -> list[Job]:
        """Send a claim, and return its jobs, the oldest first."""
        source, places, limit, start, _ = request
        lanes = [self.lanes.seen(lane) for lane, *_ in places]
        cursors = [LaneCursor(*place) for place in places]
        taken = await link.run(source.claim(cursors, limit, start=start, lanes=lanes))
        taken.sort(key=OLDEST_FIRST)  # all of one claim are equally urgent
        self.lanes.took(places, taken, limit, self._lane_of_job)
        source.claimed(taken)
        return taken

    def _of_one_source(self, places: list[Place]) -> tuple[WorkSource[Any], list[Place]]:
        """Return the places of one source, in turn where sources are equally urgent."""
        if len(self._sources) == 1 or len(places) == 1:
            return self._source_of(places[0]), places
        by_source: dict[WorkSource[Any], list[Place]] = {}
        for place in places:
            by_source.setdefault(self._source_of(place), []).append(place)
        others = (source for source in by_source if source is not self._last_source)
        self._last_source = next(others, self._last_source)
        return self._last_source, by_source[self._last_source]

    def _source_of(self, place: Place) -> WorkSource[Any]:
        if len(self._sources) == 1:
            return self._sources[0]
        lane = self.lanes.seen(place[0])
        return next(source for source in self._sources if source.owns(lane))

    async def _survey(self) -> None:
        began = time.perf_counter()
        found: list[Lane] = []
        for source in self._sources:
            found += await self._links[0].run(source.survey())
        self.lanes.surveyed(found, self._loop.time(), time.perf_counter() - began)
        if len(self._lane_of) > MAX_LANES_KNOWN:
            self._lane_of.clear()
        self._lane_of |= {
            (lane.job_type, lane.queue, lane.worker_capability, lane.priority): lane.lane
            for lane in found
        }

    def _serves(self, lane: Lane) -> bool:
        return serves(self._worker, lane, REQUESTS) and not self._transport.carries(lane)

    def _lane_of_job(self, job: Any) -> int | None:
        return self._lane_of.get((job.type, job.queue, job.worker_capability, job.priority))
