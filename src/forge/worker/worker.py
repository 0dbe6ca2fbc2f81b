"""A worker: its parts, started together and ended in order."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from forge.app import Forge
from forge.core.claims import Claims
from forge.core.errors import ForgeError
from forge.core.job import Job
from forge.core.outcome import Released, settle
from forge.core.run import Run
from forge.requests import REQUESTS
from forge.store import job_types, workers
from forge.store.database import Database
from forge.store.link import Link
from forge.store.waiting import within
from forge.store.workers import Beat
from forge.telemetry.call_meter import CallMeter
from forge.types import type_rows
from forge.worker.acker import Acker
from forge.worker.children import Children
from forge.worker.claimer import Claimer
from forge.worker.concluder import Concluder
from forge.worker.ears import Ears
from forge.worker.every import every
from forge.worker.heart import Heart, Pace, rescue, rescue_runs
from forge.worker.messages import Messages
from forge.worker.notes import INTERVAL as NOTES_INTERVAL
from forge.worker.notes import Notes
from forge.worker.prune import Pruner
from forge.worker.reconcile import Reconciler
from forge.worker.recurrence import Recurrence
from forge.worker.registered import registration_of
from forge.worker.runner import Runner
from forge.worker.standstill import INTERVAL as STANDSTILL_INTERVAL
from forge.worker.standstill import Standstill
from forge.worker.surroundings import InLoop
from forge.worker.tell import INTERVAL as TELL_INTERVAL
from forge.worker.tell import Teller


class Worker:
    """Claims and runs the jobs of one app until it is stopped."""

    def __init__(self, app: Forge) -> None:
        self.app = app
        self.settings = app.config.worker
        self.events = app.events
        self.definitions = app.definitions | REQUESTS
        self.registration = registration_of(app)
        self.recurrence: Recurrence | None = None
        self.messages: Messages | None = None
        self.started = asyncio.Event()
        self._draining = asyncio.Event()
        self._releasing = asyncio.Event()
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Work until `drain` or `release` is called and all that was begun is settled."""
        database = await (await self.app.session()).database()
        await self._open(database)
        async with asyncio.TaskGroup() as chores:
            for seconds, act in self._rounds():
                chores.create_task(every(seconds, act, self._stop, self.events))
            if not database.pooler:
                chores.create_task(self.ears.listener.run(self._stop))
            acking = [chores.create_task(self.acker.run(self._stop))]
            if self.recurrence is not None:
                acking.append(chores.create_task(self.recurrence.concluder.run(self._stop)))
            claiming = chores.create_task(self.claimer.run())
            if self.messages is not None:
                self.messages.start(chores, self._stop)
            self.standstill = Standstill(self.events, self._running_types)
            self.started.set()
            await self._draining.wait()
            await self._wind_down(claiming, acking)
        await self._close()

    def drain(self) -> None:
        """Claim nothing more and end when what runs is done, or the grace is over."""
        self._draining.set()

    def release(self) -> None:
        """End now: give back whatever is not done."""
        self._draining.set()
        self._releasing.set()

    async def _open(self, database: Database) -> None:
        settings = self.settings
        self._loop = asyncio.get_running_loop()
        claims, more_claims, acks, more_acks, side = (database.link() for _ in range(5))
        self._links: tuple[Link, ...] = (claims, more_claims, acks, more_acks, side)
        self._side = side
        await side.run(workers.register(self.registration))
        await side.run(job_types.register(type_rows(self.app.definitions.values())))
        # What this worker owned in an earlier life is nobody's now.
        stale = settings.stale_threshold.total_seconds()
        await rescue(side, [self.registration.id], 0, stale, self.events)
        recurrence = await self._open_schedules(database)
        self.teller = Teller(side)
        sqs = self.app.config.transport.queues
        changed = self.teller.changed if sqs is None else self._written
        self.acker = Acker((acks, more_acks), self.events, changed)
        self.notes = Notes(side, self.teller.changed, self._let_go)
        meter = CallMeter(self.app.metrics.worker)
        self.around = InLoop(side, self.notes, await database.users(), meter)
        children = Children(self.app, database.url)
        self.runner = Runner(
            self.app, self.definitions, self.acker, self.notes, self.around, children, recurrence
        )
        self.acker.refused = self._let_go
        self.claims = Claims(settings.dead_after.total_seconds())
        self.claimer = Claimer(
            (claims, more_claims),
            self.registration,
            self.runner,
            self.acker,
            self.events,
            batch_size=settings.batch_size,
            poll=self._poll,
            told=self.teller.changed,
            is_heard=lambda: self.heart.is_heard(),
            claims=self.claims,
            release=self.release_jobs,
            recurrence=recurrence,
        )
        if sqs is not None:
            self.messages = Messages(self, database, sqs)
            self.claimer.is_carried = self.messages.carries
            await self.messages.open()
        self.acker.written = self.claimer.look_again
        self.runner.slot_freed = self.claimer.slot_freed if sqs is None else self._slot_freed
        self.ears = Ears(
            database,
            self.registration.id,
            self.events,
            knocks_every=settings.heartbeat_interval.total_seconds(),
            look=self._hint,
            is_full=lambda: len(self.runner.running) >= settings.max_concurrent,
            call_everyone=self.teller.call_everyone,
            let_go=self._let_go,
        )
        self.pruner = Pruner(side, self.app.config.retention)
        self.reconciler = Reconciler(
            side,
            self.registration,
            self.runner,
            self.claimer,
            self.claims,
            self._let_go,
            self._is_unwritten,
        )
        self.heart = Heart(
            database, self.registration, Pace.of(settings), self.events, self._beat_from_thread
        )
        self.heart.start()

    async def _open_schedules(self, database: Database) -> Recurrence | None:
        """See to the schedules, where the app has handlers for any."""
        definitions = self.app.schedule_definitions
        if not definitions:
            return None
        link, stale = database.link(), self.settings.stale_threshold.total_seconds()
        self._links = (*self._links, link)
        await rescue_runs(link, [self.registration.id], 0, stale, self.events)
        await self.app.schedules.plant(link.run)
        concluder = Concluder(link, self.events, lambda: self.claimer.look_again())
        self.recurrence = Recurrence(definitions, concluder)
        return self.recurrence

    async def _wind_down(
        self, claiming: "asyncio.Task[None]", acking: "list[asyncio.Task[None]]"
    ) -> None:
        self.heart.draining = True
        self.claimer.stop()
        if self.messages is not None:
            await self.messages.receiver.stop()
        await claiming
        self.release_jobs(self.claimer.ahead.take_all())
        grace = self._loop.time() + self.settings.shutdown_grace.total_seconds()
        while self.runner.running and self._loop.time() < grace:
            if await within(self._releasing, 0.05):
                break
        if self.runner.running:
            await self._release_running()
        self._stop.set()
        self.acker.wake()
        if self.recurrence is not None:
            self.recurrence.concluder.wake()
        await asyncio.wait(acking, timeout=self.settings.shutdown_grace.total_seconds())
        if not all(task.done() for task in acking):
            self.events.notice("error", "the database is away: what is not written will run again")
            for task in acking:
                task.cancel()

    async def _release_running(self) -> None:
        """Ask what still runs to stop; what does not is given back all the same, and we exit."""
        tasks = [attempt.task for attempt in self.runner.running.values() if attempt.task]
        if self.messages is not None:
            self.messages.keeper.return_all()
        self.runner.release_all()
        if tasks:
            await asyncio.wait(tasks, timeout=2)
        self.release_jobs([attempt.job for attempt in self.runner.running.values()])

    def release_jobs(self, held: Sequence[Job]) -> None:
        """Give jobs back, their attempts with them."""
        for job in held:
            if not isinstance(job, Run):
                policy = self.runner.policy_of(job)
                self.acker.ack(settle(job, Released(), policy, 0.0), None)
        if self.recurrence is not None:
            self.recurrence.release(held)

    async def _close(self) -> None:
        await asyncio.to_thread(self.heart.stop)
        with suppress(ForgeError):  # who cannot say goodbye is found dead instead
            await self.reconciler.give_back_all()
            await self.teller.tell()
            await self._side.run(workers.leave(self.registration))
        if self.messages is not None:
            await self.messages.close()
        await self.runner.close()
        await self.around.close()
        for link in self._links:
            await link.close()

    def _rounds(self) -> list[tuple[float, Any]]:
        rounds = [] if self.messages is None else self.messages.rounds()
        return [
            *rounds,
            (NOTES_INTERVAL, self.notes.flush),
            (TELL_INTERVAL, self.teller.tell),
            (STANDSTILL_INTERVAL, self._watch_deadlines),
            (0.25, self._release_overdue),
            (self.reconciler.interval, self.reconciler.reconcile),
            (self.pruner.interval, self._prune),
        ]

    async def _prune(self) -> None:
        if self.is_first:  # one worker's worth of pruning is enough
            await self.pruner.prune()

    @property
    def is_first(self) -> bool:
        """Whether this worker does what one alone of its kind has to do."""
        return self.ears.is_first

    def _written(self, job_ids: Sequence[UUID]) -> None:
        self.teller.changed(job_ids)
        if self.messages is not None:
            self.messages.written(job_ids)

    def _slot_freed(self) -> None:
        self.claimer.slot_freed()
        if self.messages is not None:
            self.messages.look_again()

    async def _watch_deadlines(self) -> None:
        self.heart.running = len(self.runner.running)
        self.standstill.look()
        self.runner.stop_overdue()

    def _running_types(self) -> list[str]:
        return [attempt.job.type for attempt in self.runner.running.values()]

    async def _release_overdue(self) -> None:
        self.release_jobs(self.claimer.ahead.take_overdue(self._loop.time()))

    def _poll(self) -> float:
        """Poll seldom only while the listener is known to hear, and the worker may claim."""
        settings = self.settings
        is_calm = self.ears.hears and self.heart.is_heard()
        pause = settings.idle_poll_interval if is_calm else settings.poll_interval
        return pause.total_seconds()

    def _is_unwritten(self) -> bool:
        runs = 0 if self.recurrence is None else self.recurrence.concluder.unwritten
        return self.acker.unwritten + runs > 0

    def _hint(self) -> None:
        self.claimer.hint()
        if self.messages is not None:
            self.messages.sender.hint()

    def _let_go(self, job_id: UUID, lease: int) -> None:
        self.runner.let_go(job_id, lease)
        self.claimer.ahead.forget(job_id)

    def _beat_from_thread(self, beat: Beat) -> None:
        self._loop.call_soon_threadsafe(self._on_beat, beat)

    def _on_beat(self, beat: Beat) -> None:
        if not beat.is_current:
            self.events.notice("error", "another worker has taken this one's id; it stops")
            self.release()
        self.ears.knocked(beat.peers)
