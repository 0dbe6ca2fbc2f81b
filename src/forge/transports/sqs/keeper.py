"""Messages in hand: kept invisible while their jobs run, deleted when the end is in PostgreSQL."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from forge.core.event import Events
from forge.store import messages
from forge.store.link import Link
from forge.store.waiting import within
from forge.transports.sqs.judgement import is_over
from forge.transports.sqs.queues import Message, Queues

INTERVAL = 1.0
# A deletion that fails so often is given up: the message comes again and is judged then.
MOST_TRIES = 5


class Kept(NamedTuple):
    """A message and the attempt that it led to."""

    message: Message
    lease: int


class Keeper:
    """Holds the message of every job that runs here."""

    def __init__(
        self,
        link: Link,
        queues: Queues,
        worker_id: UUID,
        visibility: float,
        is_running: Callable[[UUID], bool],
        events: Events,
    ) -> None:
        self._link = link
        self._queues = queues
        self._worker_id = worker_id
        self._visibility = visibility
        self._is_running = is_running
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._kept: dict[UUID, Kept] = {}
        self._orphans: set[UUID] = set()
        self._done: list[tuple[Message, int]] = []
        self._work = asyncio.Event()
        self._extend_at = 0.0
        self._returned: list[Message] | None = None

    def keep(self, message: Message, job_id: UUID, lease: int) -> None:
        """This message's job runs here now."""
        if not self._kept:
            self._extend_at = self._loop.time() + self._visibility / 3
        if (former := self._kept.get(job_id)) is not None and former.message.id != message.id:
            self.delete([former.message])
        self._kept[job_id] = Kept(message, lease)

    def is_kept(self, message: Message, job_id: UUID) -> bool:
        """Whether a job that runs here had this message, of which the newest receipt counts."""
        kept = self._kept.get(job_id)
        if kept is None or kept.message.id != message.id:
            return False
        self._kept[job_id] = kept._replace(message=message)
        return True

    def delete(self, needless: Iterable[Message]) -> None:
        """Delete messages as soon as SQS takes it."""
        self._done += [(message, 0) for message in needless]
        self._work.set()

    def written(self, job_ids: Sequence[UUID]) -> None:
        """The ends of these jobs' attempts are in the database."""
        ended = [kept.message for id in job_ids if (kept := self._kept.pop(id, None)) is not None]
        if self._returned is None:
            self.delete(ended)
        else:
            self._returned += ended

    def return_all(self) -> None:
        """From now on what ends was given back: its message is for somebody else, at once."""
        self._returned = []

    async def run(self, stop: asyncio.Event) -> None:
        """Delete what is done until told to stop and nothing is left."""
        while not stop.is_set() or self._done:
            if await within(self._work, INTERVAL / 2):
                self._work.clear()
            await self._delete_done()

    async def look(self) -> None:
        """Keep the messages of what runs invisible, and find those whose attempts are over."""
        if self._loop.time() >= self._extend_at:
            self._extend_at = self._loop.time() + self._visibility / 3
            kept = [kept.message for kept in self._kept.values()]
            # What fails is shown again; whoever receives it sees that its owner lives.
            await self._queues.hide(kept, self._visibility)
        await self._forget_what_is_over()

    async def close(self) -> None:
        """Delete what is done, and show everybody the rest."""
        await self._delete_done()
        left = [kept.message for kept in self._kept.values()]
        self._kept.clear()
        await self._queues.hide([*left, *(self._returned or ())], 0)

    async def _forget_what_is_over(self) -> None:
        """Let go of jobs whose handlers completed them themselves, or that were cancelled."""
        idle = {job_id for job_id in self._kept if not self._is_running(job_id)}
        # Acks are on their way for a moment: only what is found twice counts.
        asked, self._orphans = idle & self._orphans, idle
        if not asked:
            return
        stands = await self._link.run(messages.standing(list(asked), 0))
        over = [
            job_id
            for job_id in asked
            if (kept := self._kept.get(job_id))
            and is_over(stands.get(job_id), self._worker_id, kept.lease)
        ]
        self.written(over)

    async def _delete_done(self) -> None:
        done, self._done = self._done, []
        if not done:
            return
        tries = {message: count + 1 for message, count in done}
        left = await self._queues.delete(list(tries))
        again = [(message, tries[message]) for message in left if tries[message] < MOST_TRIES]
        self._done += again
        if left:
            self._events.notice("warning", "messages could not be deleted", messages=len(left))
            await asyncio.sleep(INTERVAL / 2)
