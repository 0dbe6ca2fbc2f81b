"""The interface between a worker and its transport."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

from forge.core.job import Job
from forge.core.workers.lanes import Claims
from forge.store.connection.waiting import Signal
from forge.store.jobs import Lane
from forge.store.workers import Registration

# How often something is done, in seconds, and what.
Round = tuple[float, Callable[[], Awaitable[object]]]


class Transport(Protocol):
    """How a worker learns that there is work, and how other workers learn of it."""

    @property
    def is_first(self) -> bool:
        """Whether this worker does what only one of all workers has to do."""

    async def open(self) -> None:
        """Prepare the database for this transport."""

    def start(self, worker: "WorkerPort", tasks: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        """Deliver to a worker, in tasks of this group, until stopped."""

    def rounds(self) -> list[Round]:
        """Return what a worker has to do periodically for this transport."""

    def carries(self, lane: Lane) -> bool:
        """Whether the jobs of a lane arrive by message, so that workers do not look for them."""

    def is_listening(self) -> bool:
        """Whether notifications are known to arrive, so that polling can be rare."""

    def is_reachable(self) -> bool:
        """Whether everything that jobs arrive by answered when it was last asked."""

    def heartbeat_sent(self, peers: Sequence[UUID], *, is_first: bool) -> None:
        """Take note of a heartbeat, and of the live workers that claim the same jobs."""

    def acked(self, job_ids: Sequence[UUID]) -> None:
        """Take note that the ends of attempts are in the database."""

    def wake_everyone(self) -> None:
        """Wake every idle worker before long: this one has no slot for its work."""

    async def flush(self) -> None:
        """Send the wake-ups that wait."""

    async def stop_receiving(self) -> None:
        """Claim nothing more; return when no claim is under way."""

    def return_unfinished(self) -> None:
        """From now on, return what arrived for the jobs that end: they were released."""

    async def close(self) -> None:
        """Give up all connections."""


class WorkerPort(Protocol):
    """What a transport needs of the worker that it serves."""

    @property
    def registration(self) -> Registration:
        """Which jobs the worker takes."""

    @property
    def claims(self) -> Claims:
        """The claims that are under way."""

    @property
    def room_changed(self) -> Signal:
        """Set whenever the worker may have room for more jobs."""

    def wake(self, *, for_builtin_jobs: bool) -> None:
        """Look for work, also for built-in jobs that run beside the slots."""

    def recheck(self, job_id: UUID, lease: int) -> None:
        """Look whether the worker still owns a job."""

    def room(self) -> int:
        """Return how many more jobs the worker has slots for."""

    def is_full(self) -> bool:
        """Whether all slots are taken."""

    def is_drained(self) -> bool:
        """Whether an operator has the worker claim nothing."""

    def may_claim(self) -> bool:
        """Whether the worker is alive to others, and its acks are not behind."""

    def may_judge(self) -> bool:
        """Whether the worker may declare a silent one dead."""

    def database_time(self) -> float:
        """Return the time of the database, in seconds since the epoch."""

    def start(self, job: Job) -> None:
        """Run a job that was claimed."""

    def release(self, job: Job) -> None:
        """Make a claimed job claimable again."""

    def claimed(self, jobs: Sequence[Job]) -> None:
        """Report jobs that were claimed."""
