"""Sends messages for the rows of the outbox, in batches."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence

from forge.config.transport import SqsConfig
from forge.core.errors import ForgeError
from forge.core.events import Events
from forge.core.workers.lanes import BEGINNING
from forge.store import jobs, outbox
from forge.store.connection.link import Link
from forge.store.connection.waiting import Backoff, within
from forge.store.jobs import Lane, LaneCursor
from forge.store.outbox import OutboxEntry
from forge.transports.sqs.queues import BATCH, Queues, QueueUnavailable, tens
from forge.transports.sqs.routes import Routes

INTERVAL = 1.0
# Rows per statement: a few requests at once, and few messages to repeat if the worker dies.
MAX_AT_ONCE = 50
# The longest pause, in seconds, before a lost message is sent again.
LATEST_RESEND = 3600.0
# While a queue is long, an earlier message of a job is most likely still in it, and is not sent
# again; from this number of sends on it is.
SENDS_IN_DOUBT = 5
LONG = 2 * BATCH


class Sender:
    """Sends what is due, when woken or every second; any number of workers share the work."""

    def __init__(
        self,
        link: Link,
        queues: Queues,
        routes: Routes,
        settings: SqsConfig,
        woken: asyncio.Event,
        events: Events,
    ) -> None:
        self._link = link
        self._queues = queues
        self._routes = routes
        self._resend_after = settings.resend_after.total_seconds()
        self._events = events
        self._woken = woken
        self._looks: dict[str, tuple[float, bool]] = {}

    def wake(self) -> None:
        """Look into the outbox soon: there may be a new row."""
        self._woken.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Send until stopped."""
        backoff = Backoff()
        while not stop.is_set():
            await within(self._woken, INTERVAL * random.uniform(0.9, 1.1))
            self._woken.clear()
            try:
                while not stop.is_set() and await self.send_due():
                    backoff.reset()
            except ForgeError as error:
                self._events.notice("warning", "messages wait to be sent", error=str(error))
                await within(stop, backoff.next())

    async def send_due(self) -> int:
        """Send a batch of what is due; return how many rows it had, 0 when nothing is left."""
        taken = await self._link.run(
            outbox.take(MAX_AT_ONCE, self._resend_after, max(self._resend_after, LATEST_RESEND))
        )
        needed, needless = self._sorted(taken)
        if needless:
            await self._link.run(outbox.drop(needless))
        answers = await asyncio.gather(
            *(self._send(url, entries) for url, entries in needed), return_exceptions=True
        )
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        if failures:
            raise failures[0]
        return len(taken)

    def _sorted(
        self, taken: Sequence[OutboxEntry]
    ) -> tuple[list[tuple[str, list[OutboxEntry]]], list[OutboxEntry]]:
        by_url: dict[str, list[OutboxEntry]] = defaultdict(list)
        needless: list[OutboxEntry] = []
        for entry in taken:
            url = self._routes.queue_of(entry) if entry.is_waiting else None
            (needless if url is None else by_url[url]).append(entry)
        batches = [(url, batch) for url, found in by_url.items() for batch in tens(found)]
        return batches, needless

    async def _send(self, url: str, entries: list[OutboxEntry]) -> None:
        if any(1 < entry.sends < SENDS_IN_DOUBT for entry in entries) and await self._is_long(url):
            entries = [entry for entry in entries if not 1 < entry.sends < SENDS_IN_DOUBT]
        if entries:
            await self._send_all(url, entries)

    async def _is_long(self, url: str) -> bool:
        """Whether a queue had many messages at most a second ago."""
        now = asyncio.get_running_loop().time()
        looked_at, is_long = self._looks.get(url, (-INTERVAL, False))
        if now - looked_at >= INTERVAL:
            try:
                is_long = await self._queues.depth(url) > LONG
            except QueueUnavailable:
                is_long = False  # a duplicate is better than no message
            self._looks[url] = (now, is_long)
        return is_long

    async def _send_all(self, url: str, entries: list[OutboxEntry]) -> None:
        try:
            failed = await self._queues.send(url, entries)
        except QueueUnavailable:
            # They may have been sent. A duplicate does no harm, but a slow queue must not be
            # flooded: each time they wait longer.
            seconds = min(2.0 ** min(entries[0].sends, 10), self._resend_after)
            await self._link.run(outbox.put_back(entries, seconds * _about_one(), unsent=False))
            raise
        refused = [entry for entry in entries if entry.job_id in failed]
        if refused:
            await self._link.run(outbox.put_back(refused, _about_one(), unsent=True))


def _about_one() -> float:
    return random.uniform(0.5, 1.5)


# Rows per step, and steps per round: a long lane takes several rounds.
STEP = 1000
MAX_STEPS = 20


class Sweeper:
    """Walks each lane by its index, and starts over at its end.

    A trigger adds the row of each job. Jobs without one were dispatched while the outbox was off,
    or before it was emptied.
    """

    interval = 5.0
    # Seconds that a job is due before its row counts as missing.
    due_for = 5.0

    def __init__(self, link: Link, routes: Routes) -> None:
        self._link = link
        self._routes = routes
        self._places: dict[int, LaneCursor] = {}

    async def sweep(self) -> int:
        """Continue the walk; return how many rows were added."""
        found = await self._link.run(jobs.survey())
        mine = [lane for lane in found if self._is_sent(lane)]
        known = {lane.lane: LaneCursor(lane.lane, *BEGINNING) for lane in mine}
        self._places = known | {
            lane: place for lane, place in self._places.items() if lane in known
        }
        share = max(MAX_STEPS // max(len(known), 1), 1)
        return sum([await self._walk(place, share) for place in list(self._places.values())])

    async def _walk(self, place: LaneCursor, steps: int) -> int:
        """Go some steps along one lane; return how many rows were added."""
        added, ahead = 0, place
        for _ in range(steps):
            count, following = await self._step(ahead)
            added += count
            if following is None:
                break
            ahead = following
        return added

    async def _step(self, place: LaneCursor) -> tuple[int, LaneCursor | None]:
        """Check the next jobs of a lane; return the rows added, and where the lane continues."""
        row = await self._link.run(outbox.sweep(place, STEP, self.due_for))
        if row["looked_at"] < STEP:
            self._places[place.lane] = LaneCursor(place.lane, *BEGINNING)
            return row["announced"], None
        self._places[place.lane] = LaneCursor(place.lane, row["at"], row["id"])
        return row["announced"], self._places[place.lane]

    def _is_sent(self, lane: Lane) -> bool:
        return lane.due_in <= 0 and self._routes.queue_of(lane) is not None
