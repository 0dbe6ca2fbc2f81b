"""A worker: its parts, started together and ended in order."""

import asyncio
from contextlib import closing, suppress
from typing import Any

from forge.app import Forge
from forge.builtin_jobs.definitions import REQUESTS, canary_of
from forge.core.errors import ForgeError
from forge.core.job import CANARY
from forge.core.workers.lanes import Claims
from forge.store import workers
from forge.store.connection.database import Database, Pool
from forge.store.connection.waiting import within
from forge.telemetry.logs.attempt_records import mark_records
from forge.telemetry.metrics.external_calls import CallMeter
from forge.transports.factory import make_transport
from forge.transports.transport import Round
from forge.worker.attempt_counts import AttemptCounts
from forge.worker.builtin_claimer import BuiltinClaimer
from forge.worker.claimer import Claimer, ClaimLimits, PollInterval
from forge.worker.handlers.children import HandlerPlaces
from forge.worker.handlers.forks import ForkWatch
from forge.worker.handlers.runtime import HandlerConnections, LoopRuntime
from forge.worker.heartbeat import Heartbeat, HeartbeatReactions
from forge.worker.heartbeat_carrier import WorkerLinks
from forge.worker.held_work import HeldWork
from forge.worker.job_reports import INTERVAL as REPORT_INTERVAL
from forge.worker.job_reports import JobReports
from forge.worker.job_source import JobAcker, JobSource, policies_of
from forge.worker.liveness import HeartbeatTiming, Liveness
from forge.worker.loop_lag import INTERVAL as LAG_INTERVAL
from forge.worker.loop_lag import LoopLagMonitor
from forge.worker.loops import StopSignals, WorkSignals, every
from forge.worker.paused_work import INTERVAL as PAUSE_INTERVAL
from forge.worker.paused_work import PausedWork
from forge.worker.progress import INTERVAL as PROGRESS_INTERVAL
from forge.worker.progress import ProgressWriter
from forge.worker.prune import Pruner
from forge.worker.reconcile import Recheck, Reconciler
from forge.worker.runner import Runner
from forge.worker.schedule_source import ScheduleAcker, ScheduleSource
from forge.worker.startup import register, registration_of, when_it_answers
from forge.worker.transport_port import TransportPort
from forge.worker.work_finder import WorkFinder
from forge.worker.work_source import WorkSource

# How often jobs that wait too long for a slot are released, in seconds.
OVERDUE_INTERVAL = 0.25
# How many seconds a handler that was asked to stop at the end of its worker may take.
RELEASE_TIMEOUT = 2.0


class Worker:
    """Claims and runs the jobs of one app until it is stopped."""

    def __init__(self, app: Forge) -> None:
        self.app = app
        self.settings = app.config.worker
        self.events = app.events
        self.registration = registration_of(app)
        self.started = asyncio.Event()
        self._stop = StopSignals()

    async def run(self) -> None:
        """Work until `drain` or `release` is called and all that was begun is settled."""
        mark_records()
        database = await (await self.app.session()).database()
        self._open(database, await database.users())
        self.counts.open()
        try:
            if await when_it_answers(self._register, self._stop.draining, self.events):
                watch = closing(ForkWatch(self._forked))
                lag = closing(LoopLagMonitor(self.events, self.held))
                with watch, lag as self._loop_lag:
                    await self._work()
        finally:
            await self._close()

    def drain(self) -> None:
        """Claim nothing more and end when what runs is done, or the grace is over."""
        self._stop.drain()

    def release(self) -> None:
        """End now: release everything that is not done."""
        self._stop.release()

    @property
    def is_draining(self) -> bool:
        """Whether the worker was asked to end."""
        return self._stop.draining.is_set()

    @property
    def is_first(self) -> bool:
        """Whether this worker does what only one of all workers has to do."""
        return self.transport.is_first

    def _open(self, database: Database, pool: "Pool[Any]") -> None:
        """Make the parts; none of them sends a statement before the worker is registered."""
        self._loop = asyncio.get_running_loop()
        self._links = WorkerLinks(database)
        self._side = self._links.open()
        self.held = HeldWork(self.settings.max_concurrent)
        self.liveness = Liveness(HeartbeatTiming.of(self.app.config))
        self.claims = Claims(self.settings.dead_after.total_seconds())
        self._signals = WorkSignals()
        self.transport = make_transport(
            self.app.config,
            database,
            self._side,
            self.registration,
            self.held.running.has_job,
            self.events,
        )
        self._open_sources(HandlerConnections(self._side, database, pool))
        self._open_running(database)
        self._open_claiming()
        self._open_watching(database)

    def _open_sources(self, connections: HandlerConnections) -> None:
        events, held, signals = self.events, self.held, self._signals
        canary = canary_of(self.transport.is_reachable)
        definitions = self.app.definitions | REQUESTS | {CANARY: canary}
        policies = policies_of(definitions, self.settings.crash_limit)
        self.reports = JobReports(self._side, self.transport, events)
        self.progress = ProgressWriter(self._side, self.reports, held)
        meter, limit = CallMeter(self.app.metrics.worker), self.app.config.payload.max_output
        self.runtime = LoopRuntime(
            connections, self.progress, meter, limit, self.settings.log_lines
        )
        # Two links, so that the next completions need not wait until the disk has these.
        links = self._links.open(), self._links.open()
        clock, writer = self.liveness.clock, self.registration.incarnation
        self.counts = AttemptCounts(self._side, clock, writer, events)
        acker = JobAcker(links, held, signals, policies, self.reports, self.counts)
        self.jobs = JobSource(
            self.registration, definitions, policies, acker, self.runtime, self.reports
        )
        self.sources: list[WorkSource[Any]] = [self.jobs]
        # An app without schedules sends no statement about them.
        if schedules := self.app.schedule_definitions:
            runs = ScheduleAcker(self._links.open(), held, signals, events)
            self.sources.append(
                ScheduleSource(self.registration, schedules, runs, self.runtime, events)
            )

    def _open_running(self, database: Database) -> None:
        places = HandlerPlaces.of(self.app, database.url)
        self.runner = Runner(
            self.app, self.held, self.progress, self.runtime, places, self._signals
        )
        self.paused = PausedWork(self._side, self.held)
        self.recheck = Recheck(self._side, self.held, self.jobs)
        self.reconciler = Reconciler(self._side, self.held, self.sources, self.claims)

    def _open_claiming(self) -> None:
        links = self._links.open(), self._links.open()
        self.finder = WorkFinder(links, self.registration, self.sources, self.transport)
        limits = ClaimLimits(
            self.held, self.liveness, self.claims, self.sources, self.settings.batch_size
        )
        poll = PollInterval(self.settings, self.transport, self.liveness)
        self.claimer = Claimer(self.finder, self.runner, limits, poll, self._signals, self.events)
        self.builtin_claimer = BuiltinClaimer(
            self._links.open(),
            self.jobs,
            self.runner,
            self.claimer,
            self._signals,
            self._stop.draining,
        )

    def _open_watching(self, database: Database) -> None:
        self.pruner = Pruner(self._links.open(), self.app.config.retention)
        reactions = HeartbeatReactions(
            self.runner, self.recheck, self.transport, self.liveness, self._stop, self.events
        )
        self.heartbeat = Heartbeat(
            database, self.registration, self.liveness, reactions, self._links, self.events
        )

    async def _register(self) -> None:
        await register(self.app, self.registration, self._side)
        await self.transport.open()

    async def _work(self) -> None:
        self.heartbeat.start()
        stopping = self._stop.stopping
        async with asyncio.TaskGroup() as tasks:
            for seconds, act in self._rounds():
                tasks.create_task(every(seconds, act, stopping, self.events))
            port = TransportPort(self.jobs, self.runner, self.claimer, self.recheck, self._signals)
            self.transport.start(port, tasks, stopping)
            acking = [tasks.create_task(source.acker.run(stopping)) for source in self.sources]
            claiming = tasks.create_task(self.claimer.run())
            builtin = tasks.create_task(self.builtin_claimer.run())
            self.started.set()
            await self._stop.draining.wait()
            await self._wind_down(claiming, builtin, acking)
        await self._leave()

    def _rounds(self) -> list[Round]:
        return [
            *self.transport.rounds(),
            (PROGRESS_INTERVAL, self.progress.flush),
            (REPORT_INTERVAL, self._notify),
            (LAG_INTERVAL, self._watch_deadlines),
            (OVERDUE_INTERVAL, self._release_overdue),
            (PAUSE_INTERVAL, self.paused.release),
            (self.reconciler.interval, self.reconciler.reconcile),
            (self.counts.interval, self.counts.write),
            (self.pruner.interval, self._prune),
        ]

    async def _notify(self) -> None:
        await self.transport.flush()
        await self.reports.flush()

    async def _watch_deadlines(self) -> None:
        self._loop_lag.look()
        self.runner.stop_overdue()
        self.runner.report_starts()

    async def _release_overdue(self) -> None:
        if self.held.release_overdue(self._loop.time()):
            self.transport.wake_everyone()

    async def _prune(self) -> None:
        # One worker's pruning is enough.
        await self.pruner.catch_up(lambda: self.is_first, self._stop.stopping)

    def _forked(self) -> None:
        self.events.notice(
            "warning",
            "a handler forked the worker's process on its event loop; the copy ends where it comes "
            'back to the loop. Use isolation="process", or multiprocessing in a plain function',
            running=sorted(set(self.held.running_types())),
        )

    async def _wind_down(
        self,
        claiming: "asyncio.Task[None]",
        builtin: "asyncio.Task[None]",
        acking: "list[asyncio.Task[None]]",
    ) -> None:
        """Return when everything that was begun is over and written, or released."""
        self.claimer.stop()
        await self.transport.stop_receiving()
        await claiming
        self.held.release_ahead()
        await self._finish_running(builtin)
        self._stop.stopping.set()
        for source in self.sources:
            source.acker.wake()
        await asyncio.wait(acking, timeout=self.settings.shutdown_grace.total_seconds())
        if not all(task.done() for task in acking):
            self.events.notice("error", "the database is away: what is not written will run again")
            for task in acking:
                task.cancel()

    async def _finish_running(self, builtin: "asyncio.Task[None]") -> None:
        end = self._loop.time() + self.settings.shutdown_grace.total_seconds()
        while self.held.running and self._loop.time() < end:
            if not self.held.slots_taken:
                self.builtin_claimer.stop()  # a stream of built-in jobs must not keep the worker
            if await within(self._stop.releasing, 0.05):
                break
        self.builtin_claimer.stop()
        await builtin
        if self.held.running:
            await self._release_running()

    async def _release_running(self) -> None:
        """Ask what still runs to stop; release also what does not."""
        tasks = [attempt.task for attempt in self.held.attempts() if attempt.task]
        self.transport.return_unfinished()
        self.runner.release_all()
        if tasks:
            await asyncio.wait(tasks, timeout=RELEASE_TIMEOUT)
        for attempt in self.held.attempts():
            attempt.source.release(attempt.job, has_begun=True)

    async def _leave(self) -> None:
        await asyncio.to_thread(self.heartbeat.stop)
        with suppress(ForgeError):  # a worker that cannot sign off is found dead instead
            await self.reconciler.give_back_all()
            await self._notify()
            await self.counts.write()
            await self._side.run(workers.leave(self.registration))

    async def _close(self) -> None:
        # A worker that was cut short must not look alive, nor go on with what it began.
        await asyncio.to_thread(self.heartbeat.stop)
        self.counts.close()
        await self.recheck.close()
        await self.transport.close()
        await self.runner.close()
        await self.reports.close()
        await self.runtime.close()
        await self._links.close()
