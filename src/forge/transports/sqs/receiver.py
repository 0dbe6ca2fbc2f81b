"""Receives messages, no more than the worker has room for."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from contextlib import suppress

from forge.core.errors import ForgeError
from forge.core.events import Events
from forge.store.connection.waiting import Backoff, within
from forge.transports.sqs.message_claimer import MessageClaimer
from forge.transports.sqs.queues import BATCH, Message, Queues
from forge.transports.transport import WorkerPort

# The longest poll of one queue while another queue waits for the same slot, in seconds.
SHORT_WAIT = 1.0
# Concurrent polls of a queue whose last answer was full.
MAX_POLLS = 3


class Receiver:
    """Polls the queues, the most important first where slots are scarce."""

    def __init__(
        self,
        queues: Queues,
        urls: Sequence[str],
        claimer: MessageClaimer,
        worker: WorkerPort,
        wait: float,
        events: Events,
    ) -> None:
        """`wait` is how many seconds SQS may hold a poll open."""
        self._queues = queues
        self._urls = list(urls)
        self._claimer = claimer
        self._worker = worker
        self._wait = wait
        self._events = events
        self._polls: dict[asyncio.Task[list[Message]], tuple[str, int]] = {}
        self._busy: set[str] = set()
        # Queues whose last poll failed, or whose messages could not be claimed.
        self._silent: set[str] = set()
        self._turn = 0
        self._changed = worker.room_changed.event()
        self.stopped = claimer.stopped

    def hears(self) -> bool:
        """Whether the last poll of every queue succeeded."""
        return not self._silent

    @property
    def reserved(self) -> int:
        """How many slots are reserved for jobs whose messages came early."""
        return self._claimer.reserved

    async def stop(self) -> None:
        """Claim nothing more; return when no claim is under way."""
        self._changed.set()
        await self._claimer.stop()

    async def run(self) -> None:
        """Receive until stopped; messages that arrive later are returned."""
        backoff = Backoff()
        while not self.stopped.is_set():
            try:
                await self._round()
                backoff.reset()
            except ForgeError as error:
                self._events.notice("warning", "messages cannot be received", error=str(error))
                await within(self.stopped, backoff.next())
        if self._polls:
            await asyncio.wait(self._polls)
            with suppress(ForgeError):  # their visibility times out
                await self._take_arrived()
        await self._claimer.close()

    async def _round(self) -> None:
        """Poll the queues for as much as there is room for, and take what arrives."""
        self._changed.clear()
        room = self._room()
        if room > 0 and not self._polls and room < len(self._urls):
            await self._ask_in_order(room)
            return
        self._ask_all(room)
        changed = asyncio.ensure_future(self._changed.wait())
        # Nothing signals that a worker which may not claim now may claim again.
        timeout = None if self._polls else SHORT_WAIT
        await asyncio.wait(
            {*self._polls, changed}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
        )
        changed.cancel()
        await self._take_arrived()

    def _room(self) -> int:
        if self.stopped.is_set() or not self._worker.may_claim():
            return 0
        asked = sum(asked for _, asked in self._polls.values())
        return self._worker.room() - asked - self._claimer.reserved

    async def _ask_in_order(self, room: int) -> None:
        """Poll one queue after the other while there are fewer slots than queues."""
        for url in self._urls:
            if await self._hear(url, self._queues.receive(url, room, 0)):
                return
        self._turn = (self._turn + 1) % len(self._urls)
        url, wait = self._urls[self._turn], min(self._wait, SHORT_WAIT)
        await self._hear(url, self._queues.receive(url, room, wait))

    def _ask_all(self, room: int) -> None:
        asked = Counter(url for url, _ in self._polls.values())
        is_ample = len(self._urls) == 1 or room >= BATCH * len(self._urls)
        wait = self._wait if is_ample else min(self._wait, SHORT_WAIT)
        for place, url in enumerate(self._urls):
            share = -(-room // (len(self._urls) - place))
            while share > 0 and asked[url] < (MAX_POLLS if url in self._busy else 1):
                most = min(share, BATCH)
                poll = asyncio.ensure_future(self._queues.receive(url, most, wait))
                self._polls[poll] = (url, most)
                asked[url] += 1
                share -= most
                room -= most

    async def _take_arrived(self) -> None:
        failure: ForgeError | None = None
        for poll in [poll for poll in self._polls if poll.done()]:
            url, most = self._polls.pop(poll)
            try:
                is_full = await self._hear(url, poll) == most
                (self._busy.add if is_full else self._busy.discard)(url)
            except ForgeError as error:
                failure = error
        if failure is not None:
            raise failure

    async def _hear(self, url: str, poll: Awaitable[list[Message]]) -> int:
        """Take the messages of a poll; return how many it brought."""
        try:
            found = await poll
            await self._claimer.take(found)
        except ForgeError:
            self._silent.add(url)
            raise
        self._silent.discard(url)
        return len(found)
