"""A worker's parts without its loops: they claim, run and ack until nothing is left to do."""

import asyncio
import time
from collections.abc import Sequence
from copy import copy
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from forge.app import Forge
from forge.builtin_jobs.definitions import REQUESTS, canary_of
from forge.core.job import CANARY, JobRecord
from forge.core.schedules.run import NO_QUEUE
from forge.core.workers.clock import DatabaseClock
from forge.core.workers.lanes import BEGINNING
from forge.definitions.job import JobDefinition
from forge.store import messages, test_runs, workers
from forge.store.borrowed.app_database import BorrowedDatabase
from forge.store.borrowed.threads import DjangoThread, is_of_django
from forge.store.connection.database import Database, Pool
from forge.store.connection.waiting import within
from forge.store.jobs import Lane, LaneCursor
from forge.store.notify import worker_channel
from forge.store.workers import Load
from forge.telemetry.logs.attempt_records import mark_records
from forge.telemetry.metrics.external_calls import CallMeter
from forge.testing.attempt_memory import AttemptMemory
from forge.transports.postgres import PostgresTransport
from forge.transports.transport import Round
from forge.worker.attempt_counts import AttemptCounts
from forge.worker.handlers.children import HandlerPlaces
from forge.worker.handlers.runtime import HandlerConnections, LoopRuntime
from forge.worker.held_work import HeldWork
from forge.worker.job_reports import INTERVAL as REPORT_INTERVAL
from forge.worker.job_reports import JobReports
from forge.worker.job_source import JobAcker, JobSource, policies_of
from forge.worker.loop_lag import INTERVAL as LAG_INTERVAL
from forge.worker.loops import WorkSignals, every
from forge.worker.progress import INTERVAL as PROGRESS_INTERVAL
from forge.worker.progress import ProgressWriter
from forge.worker.runner import Runner
from forge.worker.schedule_source import ScheduleAcker, ScheduleSource
from forge.worker.startup import register, registration_of
from forge.worker.work_source import WorkSource

# How often the engine looks again while something runs, in seconds, unless it is woken.
POLL = 0.02
# How many seconds a handler may take to stop when the engine ends before it.
STOP_TIMEOUT = 2.0


class Engine:
    """Claims, runs and acks like a worker, when it is asked to."""

    def __init__(self, app: Forge, database: Database, pool: "Pool[Any]") -> None:
        self._database = database
        self._borrowed = database if isinstance(database, BorrowedDatabase) else None
        self._link = database.link()
        self._stop = asyncio.Event()
        self._app = app = _view(app, is_serial=self._borrowed is not None)
        self.memory = AttemptMemory(app)
        self._definitions = self._known_jobs()
        self._registration = registration_of(app)._replace(
            queues=None,
            job_types=sorted(self._definitions),
            capabilities=_capabilities(self._definitions.values()),
        )
        self._signals = WorkSignals()
        self._changed = self._signals.room_changed.event()
        self._held = HeldWork(app.config.worker.max_concurrent)
        self._open_sources(pool)
        self._open_runner()

    @property
    def worker_id(self) -> UUID:
        return self._registration.id

    @property
    def is_busy(self) -> bool:
        """Whether an attempt runs here, or its end is not written yet."""
        return bool(self._held.running) or any(source.acker.unwritten for source in self._sources)

    def running(self) -> list[str]:
        """Return what runs here, for messages."""
        return self._held.running_types()

    async def claim_due(self) -> bool:
        """Claim what is due, the most urgent first, as far as there are slots; start it."""
        if self._borrowed is not None and self.is_busy:
            return False  # its statements and those of the handler share one connection
        is_any = False
        for source, lane in await self._due_lanes():
            if (room := self._held.slots - self._held.slots_taken) <= 0:
                break
            cursor = LaneCursor(lane.lane, *BEGINNING)
            taken = await self._link.run(source.claim([cursor], room, start=True, lanes=[lane]))
            self._start(taken, source)
            is_any |= bool(taken)
        return is_any

    async def claim_one(self, record: JobRecord) -> bool:
        """Claim this job and start it; False when it is not due, paused, or claimed already."""
        wants = record.worker_capability
        worker = self._registration._replace(capabilities=[] if wants is None else [wants])
        statement = messages.claim([record.id], worker, dead_after=None, locked_timeout=3600)
        taken = await self._link.run(statement)
        self._start(taken, self._jobs)
        return bool(taken)

    async def retry_now(self, job_id: UUID | None = None) -> bool:
        """Make jobs due that wait for a retry; return whether there were any."""
        return bool(await self._link.run(test_runs.retry_now(job_id)))

    async def held_elsewhere(self) -> list[str]:
        """Return the types of what other workers have claimed."""
        found = await self._link.run(test_runs.held(self.worker_id))
        return sorted(row["type"] for row in found)

    async def wait(self) -> None:
        """Wait until something may have changed."""
        await within(self._changed, POLL)
        self._changed.clear()

    async def __aenter__(self) -> Self:
        mark_records()
        await register(self._app, self._registration, self._link)
        self._counts.open()
        self.memory.open()
        acking = [source.acker.run(self._stop) for source in self._sources]
        rounds = [every(*each, self._stop, self._app.events) for each in self._rounds()]
        self._tasks = [asyncio.ensure_future(each) for each in (*acking, *rounds)]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.memory.close()
        self._counts.close()
        await self._stop_running()
        self._stop.set()
        for source in self._sources:
            source.acker.wake()
        await asyncio.wait(self._tasks, timeout=STOP_TIMEOUT)
        for task in self._tasks:
            task.cancel()
        await self._runner.close()
        await self._reports.close()
        await self._runtime.close()
        await self._leave()

    def _known_jobs(self) -> dict[str, JobDefinition[Any, Any]]:
        known = self._app.definitions | REQUESTS | {CANARY: canary_of(lambda: True)}
        if self._borrowed is None:
            return known
        return {name: _without_child(definition) for name, definition in known.items()}

    def _open_sources(self, pool: "Pool[Any]") -> None:
        app, held, link, signals = self._app, self._held, self._link, self._signals
        settings, events = app.config.worker, app.events
        interval = settings.heartbeat_interval.total_seconds()
        # It is never started: here jobs are found by looking for them.
        transport = PostgresTransport(self._database, link, interval, events)
        self._reports = JobReports(link, transport, events)
        self._progress = ProgressWriter(link, self._reports, held)
        meter, limit = CallMeter(app.metrics.worker), app.config.payload.max_output
        self._runtime = LoopRuntime(
            HandlerConnections(link, self._database, pool),
            self._progress,
            meter,
            limit,
            settings.log_lines,
        )
        clock = DatabaseClock(time.time() - time.monotonic())
        self._counts = AttemptCounts(link, clock, self._registration.incarnation, events)
        policies = policies_of(self._definitions, settings.crash_limit)
        acker = JobAcker([link], held, signals, policies, self._reports, self._counts)
        self._jobs = JobSource(
            self._registration, self._definitions, policies, acker, self._runtime, self._reports
        )
        self._sources: list[WorkSource[Any]] = [self._jobs]
        if schedules := app.schedule_definitions:
            runs = ScheduleAcker(link, held, signals, events)
            self._sources.append(
                ScheduleSource(self._registration, schedules, runs, self._runtime, events)
            )

    def _open_runner(self) -> None:
        places = HandlerPlaces.of(self._app, self._database.url)
        if self._borrowed is not None and is_of_django(self._borrowed.borrowed_link.conn):
            places = places._replace(threads=DjangoThread())
        if (borrowed := self._borrowed) is not None:

            async def in_savepoint(ctx: Any, call_next: Any) -> Any:
                await borrowed.borrowed_link.begin_part()
                try:
                    return await call_next()
                finally:
                    await borrowed.borrowed_link.end_part()

            self._app.middlewares = [in_savepoint, *self._app.middlewares]
        self._runner = Runner(
            self._app, self._held, self._progress, self._runtime, places, self._signals
        )

    def _start(self, taken: Sequence[Any], source: WorkSource[Any]) -> None:
        source.claimed(taken)
        self._runner.take(taken, source, is_started=True)

    async def _due_lanes(self) -> list[tuple[WorkSource[Any], Lane]]:
        found = [
            (source, lane)
            for source in self._sources
            for lane in await self._link.run(source.survey())
            if lane.due_in <= 0 and self._is_known(lane)
        ]
        return sorted(found, key=lambda each: (each[1].urgency, each[1].head))

    def _is_known(self, lane: Lane) -> bool:
        known = self._app.schedule_definitions if lane.queue == NO_QUEUE else self._definitions
        return lane.job_type in known

    def _rounds(self) -> list[Round]:
        deadlines: list[Round] = [(LAG_INTERVAL, self._watch_deadlines)]
        if self._borrowed is not None:
            return deadlines  # the connection is the handler's while that runs
        beat = self._app.config.worker.heartbeat_interval.total_seconds()
        writes: list[Round] = [
            (PROGRESS_INTERVAL, self._progress.flush),
            (REPORT_INTERVAL, self._reports.flush),
            (beat, self._beat),
        ]
        return deadlines + writes

    async def _watch_deadlines(self) -> None:
        self._runner.stop_overdue()

    async def _beat(self) -> None:
        """Say that this worker lives: another one in the same test would take its jobs."""
        load = Load(len(self._held.running), False)
        channel = worker_channel(self.worker_id)
        dead_after = self._app.config.worker.dead_after.total_seconds()
        await self._link.run(
            workers.beat(self._registration, load, dead_after=dead_after, channel=channel)
        )

    async def _stop_running(self) -> None:
        """Release what still runs, when the engine ends before it is idle."""
        tasks = [attempt.task for attempt in self._held.attempts() if attempt.task]
        self._runner.release_all()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_TIMEOUT)

    async def _leave(self) -> None:
        if self._borrowed is None:
            await self._progress.flush()
            await self._reports.flush()
            await self._counts.write()
        await self._link.run(workers.leave(self._registration))
        await self._link.close()


def _view(app: Forge, *, is_serial: bool) -> Forge:
    """Return the app as the engine runs it, which it may change; with one slot if `is_serial`."""
    view = app.clone()
    view.middlewares = list(app.middlewares)
    if is_serial:
        worker = app.config.worker.model_copy(update={"max_concurrent": 1})
        view.config = app.config.model_copy(update={"worker": worker})
    return view


def _without_child(definition: JobDefinition[Any, Any]) -> JobDefinition[Any, Any]:
    """Return a job that runs in this process: another one does not see an open transaction."""
    if definition.handler_kind != "process":
        return definition
    here = copy(definition)
    here.handler_kind = "async" if iscoroutinefunction(definition.handler) else "thread"
    return here


def _capabilities(definitions: Any) -> list[str]:
    wanted = {definition.job_type.worker_capability for definition in definitions}
    return sorted(wanted - {None})
