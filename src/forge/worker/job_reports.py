"""Reports about jobs: to watchers, to the transport, and to the listeners of events."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from forge.core.errors import ForgeError
from forge.core.events import AttemptEnded, AttemptStopped, Events
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.outcome import Ack
from forge.store import jobs
from forge.store.connection.link import Link
from forge.store.notify import CHANGES, MAX_IDS, changes_payload, send
from forge.transports.transport import Transport

# Seconds between two notifications of changes.
INTERVAL = 0.05
# Seconds that the end of a worker waits for the statuses of stopped attempts.
CLOSE_TIMEOUT = 2.0


class JobReports:
    """Collects what happens to jobs and reports it in batches."""

    def __init__(self, link: Link, transport: Transport, events: Events) -> None:
        self._link = link
        self._transport = transport
        self.events = events
        self._changed: set[UUID] = set()
        # Ends that are emitted when they are written, by id and lease.
        self._unwritten: dict[tuple[UUID, int], AttemptEnded] = {}
        # Stopped attempts whose job must be read again, with their duration in seconds.
        self._stopped: list[tuple[Job, float]] = []
        self._reading: asyncio.Task[None] | None = None

    def changed(self, job_ids: Sequence[UUID]) -> None:
        """Notify watchers before long; past a few hundred jobs the notification names none."""
        if len(self._changed) <= MAX_IDS:
            self._changed.update(job_ids)

    def acked(self, job_ids: Sequence[UUID]) -> None:
        """Report jobs whose attempts ended in the database."""
        self.changed(job_ids)
        self._transport.acked(job_ids)

    async def flush(self) -> None:
        """Send one notification for all that changed."""
        if self._changed:
            changed, self._changed = self._changed, set()
            await self._link.run(send(CHANGES, changes_payload(changed)))

    def emit_when_written(self, ended: AttemptEnded) -> None:
        """Emit the end of an attempt, acked just now, when the database has it."""
        self._unwritten[ended.job.id, ended.job.lease] = ended

    def written(self, entries: Sequence[Ack], refused: Sequence[Ack]) -> None:
        """Emit the ends that waited for these acks; `refused` are those that came too late."""
        if not self._unwritten:
            return
        for entry in entries:
            ended = self._unwritten.pop((entry.id, entry.lease), None)
            if ended is not None:
                if entry in refused:
                    self.stopped(ended.job, ended.seconds)
                else:
                    self.events.emit(ended)

    def stopped(self, job: Job, seconds: float) -> None:
        """Report an attempt that was stopped after this many seconds, with its job's status.

        The worker learns only that the lease has ended: the row says whether the job was cancelled
        or another worker has it.
        """
        self._stopped.append((job, seconds))
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_statuses())

    async def close(self) -> None:
        """Emit what is left, without a status if the database does not answer."""
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=CLOSE_TIMEOUT)
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read_statuses(self) -> None:
        while self._stopped:
            stopped, self._stopped = self._stopped, []
            statuses: dict[UUID, Status] = {}
            try:
                rows = await self._link.run(
                    jobs.standing([(job.id, job.lease) for job, _ in stopped])
                )
                statuses = {row["id"]: Status(row["status"]) for row in rows}
            except ForgeError:
                pass  # a record without a status is better than none
            finally:
                for job, seconds in stopped:
                    self.events.emit(AttemptStopped(job, seconds, statuses.get(job.id)))
