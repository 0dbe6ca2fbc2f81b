"""Claims the jobs that messages name, and decides what becomes of the messages."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from forge.core.errors import ForgeError
from forge.core.events import AttemptLost, Events
from forge.core.job import Job
from forge.store import messages, outbox
from forge.store.connection.link import Link
from forge.store.messages import Reclaimed
from forge.transports.sqs.early import LONGEST_HOLD, EarlyMessage, EarlyMessages
from forge.transports.sqs.message_holder import (
    IN_A_MOMENT,
    Delete,
    ForgetMessage,
    HoldMessage,
    MessageHolder,
    judge,
)
from forge.transports.sqs.queues import Message, Queues
from forge.transports.transport import WorkerPort

# Seconds until messages are shown again that arrive while the database is away.
OUTAGE_DELAY = 2.0


class ClaimTiming(NamedTuple):
    """Seconds without a heartbeat until a known owner, and an unknown one, counts as dead."""

    dead_after: float
    locked_timeout: float


class MessageClaimer:
    """Claims by id, one statement at a time."""

    def __init__(
        self,
        link: Link,
        queues: Queues,
        holder: MessageHolder,
        worker: WorkerPort,
        timing: ClaimTiming,
        events: Events,
    ) -> None:
        self._link = link
        self._queues = queues
        self._holder = holder
        self._worker = worker
        self._timing = timing
        self._events = events
        self._claiming = asyncio.Lock()
        self.stopped = asyncio.Event()
        slots, changed = worker.registration.max_concurrent, worker.room_changed
        self._early = EarlyMessages(slots, self.stopped, self._take_held, changed.set)

    @property
    def reserved(self) -> int:
        """How many slots are reserved for jobs whose messages came early."""
        return self._early.reserved

    async def stop(self) -> None:
        """Claim nothing more; return when no claim is under way."""
        self.stopped.set()
        async with self._claiming:
            pass

    async def close(self) -> None:
        """Wait until every early message is processed."""
        await self._early.close()

    async def take(self, found: Sequence[Message]) -> None:
        """Claim the jobs that these messages name; once stopped or drained, return the messages."""
        async with self._claiming:
            if not self.stopped.is_set() and not self._worker.is_drained():
                await self._take_up(found)
                return
        await self._queues.hide(found, 0)

    async def _take_up(self, found: Sequence[Message]) -> None:
        named: dict[UUID, Message] = {}
        for message in found:
            if message.job_id is None:
                self._events.notice("warning", "a message names no job", message_id=message.id)
            elif message.job_id in named:
                self._holder.delete([message])
            else:
                named[message.job_id] = message
        await self._hold_early(named)
        if named:
            await self._claim(named)

    async def _hold_early(self, named: dict[UUID, Message]) -> None:
        """Take out the messages whose jobs are not due yet; they are claimed when they are."""
        now = self._worker.database_time()
        early = [
            EarlyMessage(named.pop(job_id), due_in)
            for job_id, message in list(named.items())
            if message.due_at is not None and 0 < (due_in := message.due_at - now) <= LONGEST_HOLD
        ]
        await self._hold(early)

    async def _hold(self, early: Sequence[EarlyMessage]) -> None:
        if early and (left := self._early.hold(early)):
            await self._queues.hide(left, IN_A_MOMENT)

    async def _take_held(self, found: Sequence[Message]) -> None:
        try:
            await self.take([message._replace(due_at=None) for message in found])
        except ForgeError as error:
            self._events.notice("warning", "messages cannot be received", error=str(error))

    async def _claim(self, named: dict[UUID, Message]) -> None:
        worker, claims = self._worker, self._worker.claims
        claim = claims.send(monotonic())
        try:
            taken = await self._send(list(named))
        except ForgeError:
            # The claim may have been committed: the reconciler finds what this worker owns then.
            claims.lost_any = True
            claims.end(claim)
            await self._queues.hide(list(named.values()), OUTAGE_DELAY)
            raise
        if claims.is_late(claim, monotonic()):
            # Another worker may own some by now, and none may run twice. New messages follow.
            for job in taken:
                worker.release(job)
            taken = []
        for job in taken:
            self._holder.keep(named.pop(job.id), job.id, job.lease)
            if isinstance(job, Reclaimed):
                self._events.emit(_lost(job))
            worker.start(job)
        claims.end(claim)
        worker.claimed(taken)
        if named:
            await self._judge(named)

    async def _send(self, job_ids: list[UUID]) -> list[Job]:
        dead_after = self._timing.dead_after if self._worker.may_judge() else None
        return await self._link.run(
            messages.claim(
                job_ids,
                self._worker.registration,
                dead_after=dead_after,
                locked_timeout=self._timing.locked_timeout,
            )
        )

    async def _judge(self, named: dict[UUID, Message]) -> None:
        standings = await self._link.run(messages.standing(list(named), self._timing.dead_after))
        paused: list[UUID] = []
        for job_id, message in named.items():
            if self._holder.is_kept(message, job_id):
                continue
            verdict = judge(standings.get(job_id), self._worker.registration)
            if isinstance(verdict, Delete):
                self._holder.delete([message])
            elif isinstance(verdict, ForgetMessage):
                paused.append(job_id)
            elif isinstance(verdict, HoldMessage):
                await self._hold([EarlyMessage(message, verdict.seconds)])
            elif verdict.seconds is not None:
                await self._queues.hide([message], verdict.seconds)
        if paused:
            # First the rows: without its row the sweeper sends a job that lost its message.
            await self._link.run(outbox.forget(paused))
            self._holder.delete(named[job_id] for job_id in paused)


def _lost(job: Reclaimed) -> AttemptLost:
    return AttemptLost(
        job.id,
        job.type,
        job.queue,
        job.attempt,
        job.crashes - 1,
        job.tenant_id,
        job.correlation_id,
        job.ran_for,
    )
