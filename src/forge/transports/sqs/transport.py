"""SQS as transport: jobs arrive by message, and PostgreSQL wakes workers for everything else."""

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from forge.config.transport import SqsConfig
from forge.core.events import Events
from forge.store.connection.database import Database
from forge.store.jobs import Lane
from forge.store.workers import Registration
from forge.transports.outbox_switch import switch_on
from forge.transports.postgres import PostgresTransport
from forge.transports.sqs.message_claimer import ClaimTiming, MessageClaimer
from forge.transports.sqs.message_holder import INTERVAL as HOLDER_INTERVAL
from forge.transports.sqs.message_holder import MessageHolder
from forge.transports.sqs.queues import Queues
from forge.transports.sqs.receiver import Receiver
from forge.transports.sqs.routes import Routes
from forge.transports.sqs.sender import Sender, Sweeper
from forge.transports.transport import Round, WorkerPort


class SqsTransport:
    """Receives, holds and sends messages for one worker."""

    def __init__(
        self,
        settings: SqsConfig,
        database: Database,
        postgres: PostgresTransport,
        worker: Registration,
        is_running: Callable[[UUID], bool],
        events: Events,
    ) -> None:
        self._settings = settings
        self._database = database
        self._worker = worker
        self._events = events
        self._may_switch = True
        self._links = [database.link() for _ in range(3)]
        self._claims, sending, sweeping = self._links
        self._queues = Queues(settings)
        self._routes = Routes(settings)
        self._holder = MessageHolder(
            self._claims,
            self._queues,
            worker.id,
            settings.visibility_timeout.total_seconds(),
            is_running,
            events,
        )
        woken = postgres.woken.event()
        self._sender = Sender(sending, self._queues, self._routes, settings, woken, events)
        self._sweeper = Sweeper(sweeping, self._routes)
        # Wake-ups for built-in jobs, schedules and rows in the outbox.
        self.postgres = postgres
        # Made when the transport starts.
        self.receiver: Receiver

    @property
    def is_first(self) -> bool:
        return self.postgres.is_first

    async def open(self) -> None:
        """Make jobs leave rows in the outbox, also when it was switched off meanwhile."""
        if self._may_switch:
            self._may_switch = await switch_on(self._database, self._events)

    def start(self, worker: WorkerPort, tasks: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        self.postgres.start(worker, tasks, stop)
        locked_timeout = self._settings.locked_timeout.total_seconds()
        timing = ClaimTiming(worker.claims.dead_after, locked_timeout)
        claimer = MessageClaimer(
            self._claims, self._queues, self._holder, worker, timing, self._events
        )
        urls = self._routes.heard_by(self._worker.capabilities, self._worker.queues)
        wait = self._settings.wait.total_seconds()
        self.receiver = Receiver(self._queues, urls, claimer, worker, wait, self._events)
        tasks.create_task(self._sender.run(stop))
        tasks.create_task(self._holder.run(stop))
        tasks.create_task(self.receiver.run())

    def rounds(self) -> list[Round]:
        return [(HOLDER_INTERVAL, self._holder.look), (self._sweeper.interval, self._sweep)]

    def carries(self, lane: Lane) -> bool:
        return self._routes.queue_of(lane) is not None

    def is_listening(self) -> bool:
        return self.postgres.is_listening()

    def is_reachable(self) -> bool:
        return self.receiver.hears()

    def heartbeat_sent(self, peers: Sequence[UUID], *, is_first: bool) -> None:
        self.postgres.heartbeat_sent(peers, is_first=is_first)

    def acked(self, job_ids: Sequence[UUID]) -> None:
        self._holder.written(job_ids)
        self._sender.wake()  # a job that runs again may be sent at once

    def wake_everyone(self) -> None:
        self.postgres.wake_everyone()

    async def flush(self) -> None:
        await self.postgres.flush()

    async def stop_receiving(self) -> None:
        await self.receiver.stop()

    def return_unfinished(self) -> None:
        self._holder.return_all()

    async def close(self) -> None:
        await self._holder.close()
        await self._queues.close()
        for link in self._links:
            await link.close()

    async def _sweep(self) -> None:
        if not self.is_first:
            return
        await self.open()
        if await self._sweeper.sweep():
            self._sender.wake()
