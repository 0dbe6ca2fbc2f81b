"""The log and metric events of attempts that were stopped because their lease ended."""

import asyncio
from uuid import UUID

from forge.core.errors import ForgeError
from forge.core.event import AttemptStopped, Events
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.run import Run
from forge.store import jobs
from forge.store.link import Link

# Seconds that the end of a worker waits for the statuses.
PATIENCE = 2.0


class StoppedAttempts:
    """Reads the status of each stopped attempt's job, then emits `AttemptStopped` with it.

    The worker learns only that its lease has ended: the row says whether the job was cancelled or
    another worker has it.
    """

    def __init__(self, link: Link, events: Events) -> None:
        self._link = link
        self._events = events
        self._unread: list[tuple[Job, float]] = []
        self._reading: asyncio.Task[None] | None = None

    def add(self, job: Job, seconds: float) -> None:
        """Report an attempt that was stopped after this many seconds."""
        if isinstance(job, Run):
            self._events.emit(AttemptStopped(job, seconds, None))
            return
        self._unread.append((job, seconds))
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read())

    async def close(self) -> None:
        """Emit what is left, without a state where the database does not answer."""
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=PATIENCE)
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read(self) -> None:
        while self._unread:
            stopped, self._unread = self._unread, []
            statuses: dict[UUID, Status] = {}
            try:
                rows = await self._link.run(
                    jobs.standing([(job.id, job.lease) for job, _ in stopped])
                )
                statuses = {row["id"]: Status(row["status"]) for row in rows}
            except ForgeError:
                pass  # a record without a state is better than none
            finally:
                for job, seconds in stopped:
                    self._events.emit(AttemptStopped(job, seconds, statuses.get(job.id)))
