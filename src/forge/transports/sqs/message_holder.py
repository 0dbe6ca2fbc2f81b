"""Keeps messages invisible while their jobs run, and deletes them when the end is written."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from forge.core.events import Events
from forge.core.lifecycle import FINAL, OWNED
from forge.store import messages
from forge.store.connection.link import Link
from forge.store.connection.waiting import within
from forge.store.messages import MessageJobStatus
from forge.store.workers import Registration
from forge.transports.sqs.queues import LONGEST_DELAY, Message, Queues

# Seconds until another worker may receive a message; at once, this one would receive it again.
FOR_ANOTHER = 5.0
# Seconds until a message is tried again whose row is locked.
IN_A_MOMENT = 1.0


@dataclass(frozen=True, slots=True)
class Delete:
    """The message is obsolete."""


@dataclass(frozen=True, slots=True)
class ForgetMessage:
    """The job is paused: the sweeper has a new message sent when it is resumed."""


@dataclass(frozen=True, slots=True)
class LeaveMessage:
    """The message is visible again after these seconds; None: when its visibility times out."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class HoldMessage:
    """The job is due in these seconds, fewer than SQS can delay for: claim it then."""

    seconds: float


def judge(
    job: MessageJobStatus | None, worker: Registration
) -> Delete | ForgetMessage | LeaveMessage | HoldMessage:
    """Decide about a message by the status of its job."""
    if job is None or job.status in FINAL:
        return Delete()
    if job.status in OWNED:
        # If its owner dies, the rescue makes the job wait again, and that sends a new message.
        return Delete() if job.owner_lives else LeaveMessage(None)
    if job.due_in > LONGEST_DELAY:
        return Delete()  # the outbox has its time
    if job.due_in > 0:
        return HoldMessage(job.due_in) if job.due_in < 1 else LeaveMessage(job.due_in)
    if job.is_paused:
        return ForgetMessage()
    return LeaveMessage(IN_A_MOMENT if can_run(worker, job) else FOR_ANOTHER)


def can_run(worker: Registration, job: MessageJobStatus) -> bool:
    """Whether a worker has what a job needs."""
    return (
        job.job_type in worker.job_types
        and (worker.queues is None or job.queue in worker.queues)
        and (job.worker_capability is None or job.worker_capability in worker.capabilities)
    )


def is_over(job: MessageJobStatus | None, worker_id: UUID, lease: int) -> bool:
    """Whether an attempt's end is in the database, or another worker has the job."""
    return job is None or not (
        job.status in OWNED and job.worker_id == worker_id and job.lease == lease
    )


INTERVAL = 1.0
# Tries to delete a message: after that it is received again, and judged then.
MAX_TRIES = 5


class HeldMessage(NamedTuple):
    """A message and the attempt that it led to."""

    message: Message
    lease: int


class MessageHolder:
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
        self._kept: dict[UUID, HeldMessage] = {}
        self._orphans: set[UUID] = set()
        self._done: list[tuple[Message, int]] = []
        self._work = asyncio.Event()
        self._extend_at = 0.0
        self._returned: list[Message] | None = None

    def keep(self, message: Message, job_id: UUID, lease: int) -> None:
        """Hold the message of a job that runs here now."""
        if not self._kept:
            self._extend_at = self._loop.time() + self._visibility / 3
        if (former := self._kept.get(job_id)) is not None and former.message.id != message.id:
            self.delete([former.message])
        self._kept[job_id] = HeldMessage(message, lease)

    def is_kept(self, message: Message, job_id: UUID) -> bool:
        """Whether a job that runs here had this message; its newest receipt is kept."""
        kept = self._kept.get(job_id)
        if kept is None or kept.message.id != message.id:
            return False
        self._kept[job_id] = kept._replace(message=message)
        return True

    def delete(self, needless: Iterable[Message]) -> None:
        """Delete messages as soon as SQS accepts it."""
        self._done += [(message, 0) for message in needless]
        self._work.set()

    def written(self, job_ids: Sequence[UUID]) -> None:
        """Delete the messages of jobs whose ends are in the database."""
        ended = [kept.message for id in job_ids if (kept := self._kept.pop(id, None)) is not None]
        if self._returned is None:
            self.delete(ended)
        else:
            self._returned += ended

    def return_all(self) -> None:
        """From now on, return the messages of jobs that end: they were released."""
        self._returned = []

    async def run(self, stop: asyncio.Event) -> None:
        """Delete what is done until stopped and nothing is left."""
        while not stop.is_set() or self._done:
            if await within(self._work, INTERVAL / 2):
                self._work.clear()
            await self._delete_done()

    async def look(self) -> None:
        """Keep messages of running jobs invisible, and find those whose attempts are over."""
        if self._loop.time() >= self._extend_at:
            self._extend_at = self._loop.time() + self._visibility / 3
            kept = [kept.message for kept in self._kept.values()]
            # A message that fails is shown again; its receiver sees that the owner is alive.
            await self._queues.hide(kept, self._visibility)
        await self._forget_what_is_over()

    async def close(self) -> None:
        """Delete what is done, and make the rest visible."""
        await self._delete_done()
        left = [kept.message for kept in self._kept.values()]
        self._kept.clear()
        await self._queues.hide([*left, *(self._returned or ())], 0)

    async def _forget_what_is_over(self) -> None:
        """Forget jobs whose handlers completed them themselves, or that were cancelled."""
        idle = {job_id for job_id in self._kept if not self._is_running(job_id)}
        # Acks take a moment to be written: only what is found twice counts.
        asked, self._orphans = idle & self._orphans, idle
        if not asked:
            return
        standings = await self._link.run(messages.standing(list(asked), 0))
        over = [
            job_id
            for job_id in asked
            if (kept := self._kept.get(job_id))
            and is_over(standings.get(job_id), self._worker_id, kept.lease)
        ]
        self.written(over)

    async def _delete_done(self) -> None:
        done, self._done = self._done, []
        if not done:
            return
        tries = {message: count + 1 for message, count in done}
        left = await self._queues.delete(list(tries))
        again = [(message, tries[message]) for message in left if tries[message] < MAX_TRIES]
        self._done += again
        if left:
            self._events.notice("warning", "messages could not be deleted", messages=len(left))
            await asyncio.sleep(INTERVAL / 2)
