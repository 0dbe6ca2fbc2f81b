"""A worker: its parts, started together and ended in order."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from typing import Any
from uuid import UUID

from forge.app import Forge
from forge.core.claims import Claims
from forge.core.errors import ForgeError
from forge.core.job import Job
from forge.core.outcome import Policy, released
from forge.core.run import Run
from forge.requests import CANARY, REQUESTS, canary_of
from forge.store import workers
from forge.store.database import Database, Pool
from forge.store.link import Link
from forge.store.statement import Statement
from forge.store.workers import Beat
from forge.telemetry.attempt_records import mark_records
from forge.telemetry.call_meter import CallMeter
from forge.worker.acker import Acker
from forge.worker.arrival import arrive, when_it_answers
from forge.worker.attempt import Attempt, Stop
from forge.worker.carrier import run_on_any
from forge.worker.children import Children
from forge.worker.claimer import Claimer
from forge.worker.concluder import Concluder
from forge.worker.ears import Ears
from forge.worker.ending import wind_down
from forge.worker.every import every
from forge.worker.forks import ForkWatch
from forge.worker.heart import Heart, Pace
from forge.worker.messages import Messages
from forge.worker.notes import INTERVAL as NOTES_INTERVAL
from forge.worker.notes import Notes
from forge.worker.prune import Pruner
from forge.worker.recheck import Recheck
from forge.worker.reconcile import Reconciler
from forge.worker.recurrence import Recurrence
from forge.worker.registered import registration_of
from forge.worker.request_claimer import RequestClaimer
from forge.worker.runner import Runner
from forge.worker.standstill import INTERVAL as STANDSTILL_INTERVAL
from forge.worker.standstill import Standstill
from forge.worker.stopped import StoppedAttempts
from forge.worker.surroundings import InLoop
from forge.worker.tell import INTERVAL as TELL_INTERVAL
from forge.worker.tell import Teller


class Worker:
    """Claims and runs the jobs of one app until it is stopped."""

    def __init__(self, app: Forge) -> None:
        self.app = app
        self.settings = app.config.worker
        self.events = app.events
        self.definitions = app.definitions | REQUESTS | {CANARY: canary_of(self._hears)}
        self.policies = {
            name: Policy(definition.retry, definition.dead_letter, self.settings.crash_limit)
            for name, definition in self.definitions.items()
        }
        self.registration = registration_of(app)
        self.recurrence: Recurrence | None = None
        self.messages: Messages | None = None
        self.started = asyncio.Event()
        self._draining = asyncio.Event()
        self.releasing = asyncio.Event()
        self.stopping = asyncio.Event()
        self._is_cut_off = False

    async def run(self) -> None:
        """Work until `drain` or `release` is called and all that was begun is settled."""
        mark_records()
        database = await (await self.app.session()).database()
        self._open(database, await database.users())
        try:
            if await when_it_answers(self._arrive, self._draining, self.events):
                watch = closing(ForkWatch(self._forked))
                still = closing(Standstill(self.events, self._running))
                with watch, still as self.standstill:
                    await self._work(listens=not database.pooler)
        finally:
            await self._close()

    def drain(self) -> None:
        """Claim nothing more and end when what runs is done, or the grace is over."""
        self._draining.set()

    def release(self) -> None:
        """End now: give back whatever is not done."""
        self._draining.set()
        self.releasing.set()

    async def _arrive(self) -> None:
        await arrive(self.app, self.registration, self._side)
        if self.messages is not None:
            await self.messages.open()

    async def _work(self, *, listens: bool) -> None:
        self.heart.start()
        async with asyncio.TaskGroup() as chores:
            for seconds, act in self._rounds():
                chores.create_task(every(seconds, act, self.stopping, self.events))
            if listens:
                chores.create_task(self.ears.listener.run(self.stopping))
            acking = [chores.create_task(self.acker.run(self.stopping))]
            if self.recurrence is not None:
                acking.append(chores.create_task(self.recurrence.concluder.run(self.stopping)))
            claiming = chores.create_task(self.claimer.run())
            requests = chores.create_task(self.request_claimer.run())
            if self.messages is not None:
                self.messages.start(chores, self.stopping)
            self.started.set()
            await self._draining.wait()
            await wind_down(self, claiming, requests, acking)
        await self._leave()

    def _open(self, database: Database, pool: "Pool[Any]") -> None:
        """Make the parts; none of them says a word before the worker has arrived."""
        self._loop = asyncio.get_running_loop()
        self._side = database.link()
        self._links = [self._side]
        self._open_writing(database)
        self._open_running(database, pool)
        self._open_claiming(database)
        self._open_watching(database)

    def _link(self, database: Database) -> Link:
        self._links.append(link := database.link())
        return link

    def _open_writing(self, database: Database) -> None:
        self.teller = Teller(self._side)
        is_plain = self.app.config.transport.queues is None
        changed = self.teller.changed if is_plain else self._written
        acks = self._link(database), self._link(database)
        self.stopped_attempts = StoppedAttempts(self._side, self.events)
        self.acker = Acker(acks, self.events, changed, self.policies, self.stopped_attempts)
        self.acker.refused = self._let_go
        self.notes = Notes(self._side, self.teller.changed, self._let_go)
        if definitions := self.app.schedule_definitions:
            concluder = Concluder(self._link(database), self.events)
            self.recurrence = Recurrence(definitions, concluder)

    def _open_running(self, database: Database, pool: "Pool[Any]") -> None:
        meter = CallMeter(self.app.metrics.worker)
        limit = self.app.config.payload.max_output
        self.around = InLoop(self._side, self.notes, pool, meter, limit)
        self.runner = Runner(
            self.app,
            self.definitions,
            self.acker,
            self.policies,
            self.notes,
            self.around,
            Children(self.app, database.url),
            self.stopped_attempts,
            self.recurrence,
        )

    def _open_claiming(self, database: Database) -> None:
        settings, sqs = self.settings, self.app.config.transport.queues
        self.claims = Claims(settings.dead_after.total_seconds())
        self.claimer = Claimer(
            (self._link(database), self._link(database)),
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
            recurrence=self.recurrence,
        )
        self.request_claimer = RequestClaimer(
            self._link(database),
            self.registration,
            self.runner,
            self.claims,
            is_needed=self._needs_request_room,
            release=self.release_jobs,
        )
        self.runner.request_ended = self.request_claimer.hint
        if sqs is not None:
            self.messages = Messages(self, database, sqs)
            self.claimer.is_carried = self.messages.carries
        self.acker.written = self.claimer.look_again
        if self.recurrence is not None:
            self.recurrence.concluder.written = self.claimer.look_again
        self.runner.slot_freed = self.claimer.slot_freed if sqs is None else self._slot_freed

    def _open_watching(self, database: Database) -> None:
        settings = self.settings
        self.recheck = Recheck(self._side, self._holds, self._let_go)
        self.ears = Ears(
            database,
            self.registration.id,
            self.events,
            knocks_every=settings.heartbeat_interval.total_seconds(),
            look=self._hint,
            is_full=lambda: self.runner.slots_taken >= settings.max_concurrent,
            call_everyone=self.teller.call_everyone,
            doubt=self.recheck.hint,
        )
        self.pruner = Pruner(self._link(database), self.app.config.retention)
        self.reconciler = Reconciler(
            self._side,
            self.registration,
            self.runner,
            self.claimer,
            self.claims,
            self._let_go,
            self._is_unwritten,
        )
        self.heart = Heart(
            database,
            self.registration,
            Pace.of(self.app.config),
            self.events,
            self._beat_from_thread,
            self._silence_from_thread,
            self._carry_beat,
        )

    def release_jobs(self, held: Sequence[Job], *, have_begun: bool = False) -> None:
        """Give jobs back, their attempts with them."""
        for job in held:
            if not isinstance(job, Run):
                self.acker.ack(released(job.id, job.lease, has_begun=have_begun), None)
        if self.recurrence is not None:
            self.recurrence.release(held, have_begun=have_begun)

    async def _leave(self) -> None:
        await asyncio.to_thread(self.heart.stop)
        with suppress(ForgeError):  # who cannot say goodbye is found dead instead
            await self.reconciler.give_back_all()
            await self.teller.tell()
            await self._side.run(workers.leave(self.registration))

    async def _close(self) -> None:
        # A worker may have been cut short: then it must not look alive, nor run on what it began.
        await asyncio.to_thread(self.heart.stop)
        await self.recheck.close()
        if self.messages is not None:
            await self.messages.close()
        await self.runner.close()
        await self.stopped_attempts.close()
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
        # One worker's worth of pruning is enough.
        await self.pruner.catch_up(lambda: self.is_first, self.stopping)

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
        self.heart.running = self.runner.slots_taken
        self.standstill.look()
        self.runner.stop_overdue()
        self.runner.tell_beginnings()

    def _forked(self) -> None:
        self.events.notice(
            "warning",
            "a handler forked the worker's process on its event loop; the copy ends where it comes "
            'back to the loop. Use isolation="process", or multiprocessing in a plain function',
            running=sorted(set(self._running_types())),
        )

    def _running(self) -> list[Attempt]:
        # A copy: other threads take one, too.
        return list(self.runner.running.values())

    def _running_types(self) -> list[str]:
        return [attempt.job.type for attempt in self._running()]

    async def _release_overdue(self) -> None:
        if overdue := self.claimer.ahead.take_overdue(self._loop.time()):
            self.runner.expect_slow()
            self.release_jobs(overdue)
            self.teller.call_everyone()

    def _poll(self) -> float:
        """Poll seldom only while the listener is known to hear, and the worker may claim."""
        settings = self.settings
        is_calm = self.ears.hears and self.heart.is_heard()
        pause = settings.idle_poll_interval if is_calm else settings.poll_interval
        return pause.total_seconds()

    def _is_unwritten(self) -> bool:
        runs = 0 if self.recurrence is None else self.recurrence.concluder.unwritten
        return self.acker.unwritten + runs > 0

    def _needs_request_room(self) -> bool:
        # A claimer that has stopped for another reason is a fault, which canaries have to show.
        return self.heart.is_heard() and (self._draining.is_set() or self.claimer.is_full())

    def _hears(self) -> bool:
        return self.messages is None or self.messages.receiver.hears()

    def _hint(self, is_request: bool) -> None:
        self.claimer.hint()
        if is_request:
            self.request_claimer.hint()
        if self.messages is not None:
            self.messages.sender.hint()

    def _holds(self, job_id: UUID, lease: int) -> bool:
        """Whether an attempt at a job is in this worker's hands; runs of schedules do not count."""
        attempt = self.runner.running.get((job_id, lease))
        if attempt is not None:
            return not isinstance(attempt.job, Run)
        return (job_id, lease) in [(job.id, job.lease) for job in self.claimer.ahead.jobs]

    def _let_go(self, job_id: UUID, lease: int) -> None:
        self.runner.let_go(job_id, lease)
        self.claimer.ahead.forget(job_id, lease)

    def _carry_beat(self, statement: Statement[Any]) -> "Future[Any]":
        """Send a heartbeat, from its thread, by any connection that this loop has open."""
        return asyncio.run_coroutine_threadsafe(run_on_any(self._links, statement), self._loop)

    def _silence_from_thread(self) -> list[str]:
        """Ask every handler to stop, and return the types of those that still run."""
        self.runner.interrupt_all(Stop.CUT_OFF)
        self._loop.call_soon_threadsafe(self._cut_off)
        return sorted(self._running_types())

    def _cut_off(self) -> None:
        if not self.heart.is_cut_off():
            return  # heard again, while the loop was blocked: the reconciler finds what was taken
        if self.runner.running and not self._is_cut_off:
            self.events.notice(
                "warning",
                "the database is silent; handlers are asked to stop before another worker takes "
                "their jobs",
                running=sorted(self._running_types()),
            )
        self._is_cut_off = True
        self.runner.release_all(Stop.CUT_OFF)
        self.release_jobs(self.claimer.ahead.take_all())

    def _beat_from_thread(self, beat: Beat, is_back: bool) -> None:
        self._loop.call_soon_threadsafe(self._on_beat, beat, is_back)

    def _on_beat(self, beat: Beat, is_back: bool) -> None:
        self._is_cut_off = False
        if is_back:
            # It was not heard for long, stopped by a signal for example: what it ran may be taken.
            for job in self.reconciler.held():
                self.recheck.hint(job.id, job.lease)
        if not beat.is_current:
            self.events.notice("error", "another worker has taken this one's id; it stops")
            self.release()
        self.ears.knocked(beat.peers)
