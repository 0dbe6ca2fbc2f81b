"""Sending: what the outbox holds becomes messages after the commit, in batches."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence

from forge.config_transport import SqsConfig
from forge.core.errors import ForgeError
from forge.core.event import Events
from forge.store import outbox
from forge.store.link import Link
from forge.store.outbox import Entry
from forge.store.waiting import within
from forge.transports.sqs.queues import BATCH, Queues, QueueUnavailable, tens
from forge.transports.sqs.routes import Routes

INTERVAL = 1.0
# Rows in one go: a few requests at once, and not much to send again for whoever dies meanwhile.
MOST_AT_ONCE = 50
# A message that is lost again and again is still sent this often.
LATEST_RESEND = 3600.0
# Of a job that is told of again while its queue is long, the message is most likely in there still;
# but who knows: from here on it is sent all the same.
SENDS_IN_DOUBT = 5
LONG = 2 * BATCH
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0


class Sender:
    """Sends what is due, on a hint or every second; any number of workers share the work."""

    def __init__(
        self, link: Link, queues: Queues, routes: Routes, settings: SqsConfig, events: Events
    ) -> None:
        self._link = link
        self._queues = queues
        self._routes = routes
        self._resend_after = settings.resend_after.total_seconds()
        self._events = events
        self._hinted = asyncio.Event()
        self._looks: dict[str, tuple[float, bool]] = {}

    def hint(self) -> None:
        """Something may have been committed."""
        self._hinted.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Send until told to stop."""
        pause = FIRST_PAUSE
        while not stop.is_set():
            await within(self._hinted, INTERVAL * random.uniform(0.9, 1.1))
            self._hinted.clear()
            try:
                while not stop.is_set() and await self.send_due():
                    pause = FIRST_PAUSE
            except ForgeError as error:
                self._events.notice("warning", "messages wait to be sent", error=str(error))
                await within(stop, pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, LONGEST_PAUSE)

    async def send_due(self) -> int:
        """Send some of what is due; return how many were taken up, 0 when nothing is left."""
        taken = await self._link.run(
            outbox.take(MOST_AT_ONCE, self._resend_after, max(self._resend_after, LATEST_RESEND))
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

    def _sorted(self, taken: Sequence[Entry]) -> tuple[list[tuple[str, list[Entry]]], list[Entry]]:
        by_url: dict[str, list[Entry]] = defaultdict(list)
        needless: list[Entry] = []
        for entry in taken:
            url = self._routes.queue_of(entry) if entry.is_waiting else None
            (needless if url is None else by_url[url]).append(entry)
        batches = [(url, batch) for url, found in by_url.items() for batch in tens(found)]
        return batches, needless

    async def _send(self, url: str, entries: list[Entry]) -> None:
        if any(1 < entry.sends < SENDS_IN_DOUBT for entry in entries) and await self._is_long(url):
            entries = [entry for entry in entries if not 1 < entry.sends < SENDS_IN_DOUBT]
        if entries:
            await self._send_all(url, entries)

    async def _is_long(self, url: str) -> bool:
        """Whether a queue has much to show, going by a look that is a second old at most."""
        now = asyncio.get_running_loop().time()
        looked_at, is_long = self._looks.get(url, (-INTERVAL, False))
        if now - looked_at >= INTERVAL:
            try:
                is_long = await self._queues.depth(url) > LONG
            except QueueUnavailable:
                is_long = False  # a message too many is better than none
            self._looks[url] = (now, is_long)
        return is_long

    async def _send_all(self, url: str, entries: list[Entry]) -> None:
        try:
            failed = await self._queues.send(url, entries)
        except QueueUnavailable:
            # They may have been sent. A message too many changes nothing, but a queue that is slow
            # must not be flooded: each time they wait for longer.
            seconds = min(2.0 ** min(entries[0].sends, 10), self._resend_after)
            await self._link.run(outbox.put_back(entries, seconds * _about_one(), unsent=False))
            raise
        refused = [entry for entry in entries if entry.job_id in failed]
        if refused:
            await self._link.run(outbox.put_back(refused, _about_one(), unsent=True))


def _about_one() -> float:
    return random.uniform(0.5, 1.5)
