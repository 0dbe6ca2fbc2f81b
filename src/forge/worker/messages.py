"""SQS in a worker: its parts, started and ended with the worker's own."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import UUID

from forge.config_transport import SqsConfig
from forge.store.database import Database
from forge.store.jobs import Lane
from forge.transports.sqs.keeper import INTERVAL as KEEPER_INTERVAL
from forge.transports.sqs.keeper import Keeper
from forge.transports.sqs.queues import Queues
from forge.transports.sqs.receiver import Desk, Patience, Receiver
from forge.transports.sqs.routes import Routes
from forge.transports.sqs.sender import Sender
from forge.transports.sqs.sweeper import Sweeper
from forge.transports.switch import switch_on

if TYPE_CHECKING:
    from forge.worker.worker import Worker


class Messages:
    """Receives, keeps and sends messages for one worker."""

    def __init__(self, worker: "Worker", database: Database, settings: SqsConfig) -> None:
        self._worker = worker
        self._database = database
        self._may_not_switch = False
        self._links = [database.link() for _ in range(3)]
        claims, sending, sweeping = self._links
        who, events = worker.registration, worker.events
        self._queues = Queues(settings)
        self._routes = Routes(settings)
        visibility = settings.visibility_timeout.total_seconds()
        running = worker.runner.running
        self.keeper = Keeper(claims, self._queues, who.id, visibility, running.has_job, events)
        self.receiver = Receiver(
            claims,
            self._queues,
            self._routes.heard_by(who.capabilities, who.queues),
            who,
            self.keeper,
            self._desk(),
            self._patience(settings),
            events,
        )
        self.sender = Sender(sending, self._queues, self._routes, settings, events)
        self.sweeper = Sweeper(sweeping, self._routes)

    def carries(self, lane: Lane) -> bool:
        """Whether word of a lane's jobs comes by message, so that nobody looks for them."""
        return self._routes.queue_of(lane) is not None

    def written(self, job_ids: Sequence[UUID]) -> None:
        """The ends of attempts are in the database; what is to run again may be sent at once."""
        self.keeper.written(job_ids)
        self.sender.hint()

    def look_again(self) -> None:
        """There may be room where there was none."""
        self.receiver.look_again()

    async def open(self) -> None:
        """See that jobs leave rows in the outbox, also when somebody switched it off meanwhile."""
        if not self._may_not_switch and not await switch_on(self._database, self._worker.events):
            self._may_not_switch = True

    def start(self, chores: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        """Begin."""
        chores.create_task(self.sender.run(stop))
        chores.create_task(self.keeper.run(stop))
        chores.create_task(self.receiver.run())

    def rounds(self) -> list[tuple[float, Any]]:
        """What is done again and again, and how often."""
        return [(KEEPER_INTERVAL, self.keeper.look), (self.sweeper.interval, self._sweep)]

    async def close(self) -> None:
        await self.keeper.close()
        await self._queues.close()
        for link in self._links:
            await link.close()

    async def _sweep(self) -> None:
        if not self._worker.is_first:
            return
        await self.open()
        if await self.sweeper.sweep():
            self.sender.hint()

    def _desk(self) -> Desk:
        worker = self._worker
        runner, claimer = worker.runner, worker.claimer
        return Desk(
            slots=worker.settings.max_concurrent,
            room=lambda: worker.settings.max_concurrent - runner.slots_taken - len(claimer.ahead),
            database_time=lambda: monotonic() + worker.heart.clock.ahead,
            may_claim=claimer.may_claim,
            may_judge=lambda: worker.heart.may_judge(),
            start=runner.start,
            release=worker.release_jobs,
            told=worker.teller.changed,
            claims=worker.claims,
        )

    def _patience(self, settings: SqsConfig) -> Patience:
        return Patience(
            settings.wait.total_seconds(),
            self._worker.settings.dead_after.total_seconds(),
            settings.locked_timeout.total_seconds(),
        )
