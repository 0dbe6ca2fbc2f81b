"""Forge: the parts of an app, and its verbs."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from copy import copy
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast, overload
from uuid import UUID

from forge.builtin_jobs.bulk import bulk_job
from forge.builtin_jobs.definitions import REQUESTS
from forge.builtin_jobs.discard import discard
from forge.builtin_jobs.job_requests import (
    cancelling,
    deleting,
    moving,
    reprioritising,
    rescheduling,
    running_now,
)
from forge.builtin_jobs.reprocess import reprocess
from forge.calls.context import CallIdentity
from forge.calls.run import CallRunner
from forge.config.settings import Config, given_or_loaded, given_url
from forge.core.backlog import BacklogItem
from forge.core.bulk import BulkAction
from forge.core.equivalents import OF_AN_APP, raise_equivalent
from forge.core.errors import InvalidValue, UnknownJob
from forge.core.events import Events
from forge.core.finding import Finding, most_severe_first
from forge.core.job import JobRecord, PriorityLike
from forge.core.job_filter import InputValue, JobFilter
from forge.core.job_statistics import Group, JobStatistics, StatisticsByType
from forge.core.new_job import (
    DispatchOptions,
    RequestOptions,
    When,
    check_dict,
    check_tenant,
    check_uuid,
    parse_uuid,
)
from forge.core.overview import Overview
from forge.core.pause import Pause
from forge.core.timeline import Timeline
from forge.core.why import Why
from forge.dead_letters.review import DeadLetters, ReviewJobs
from forge.definitions.call import CallDefinition
from forge.definitions.catalog import Catalog
from forge.definitions.error_classification import Classifier
from forge.definitions.job import In, JobDefinition, Out
from forge.definitions.payload_warnings import PayloadWarnings
from forge.definitions.registry import Registry
from forge.definitions.schedule import ScheduleDecorator
from forge.jobs.audited_requests import AuditedRequests
from forge.jobs.bulk import BulkActions, BulkOptions, BulkPlan, BulkRequest, BulkSelection
from forge.jobs.dispatch import Dispatcher
from forge.jobs.follow import Watcher
from forge.jobs.handle import JobHandle
from forge.jobs.rerun import RerunOptions, RerunRequest, rerun
from forge.jobs.search import FoundJobs, JobReader, JobSearch, call_on_loop, check_limit, find_jobs
from forge.jobs.session import Session, Sessions, Telemetry
from forge.jobs.statistics_reader import (
    StatisticsFilters,
    read_backlog,
    read_by_type,
    read_series,
)
from forge.jobs.timeline import read_timeline
from forge.jobs.watch_token import own_watch_token
from forge.jobs.why import find_why
from forge.operations.pauses import PausedType, Pauses
from forge.operations.workers import Workers
from forge.schedules.app_schedules import Schedules
from forge.store import jobs
from forge.store.borrowed import run_on
from forge.store.connection.tenant import Callers, act_in_transaction
from forge.store.migrate import index_waiting, migrate
from forge.telemetry.metrics.registries import Metrics
from forge.transports.outbox_switch import switch

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.core.job_content import SearchCriteria
    from forge.core.job_filter import JobCriteria
    from forge.core.retry import ErrorClass
    from forge.definitions.call import MakesActions, MakesMutations
    from forge.definitions.job import MakesJobs
    from forge.definitions.schedule import ScheduleAttributes
    from forge.store.connection.link import Observer
    from forge.sync.app import SyncForge

Middleware = Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]


class Forge:
    """An application's jobs and the database they live in.

    Without a configured database it starts the embedded PostgreSQL when it is first used.
    """

    def __init__(self, config: Config | None = None, *, database_url: str | None = None) -> None:
        self.events: Events = Events()
        self.metrics: Metrics = Metrics()
        self.observers: list[Observer] = []
        self._telemetry = Telemetry(self.events, self.metrics, self.observers)
        self._registry = Registry(self)
        self.definitions = self._registry.jobs
        self.schedule_definitions = self._registry.schedules
        self.calls = self._registry.calls
        self.middlewares: list[Middleware] = []
        self.classifier = Classifier()
        self._configure(given_or_loaded(config), database_url)

    @classmethod
    def from_file(cls, path: str | Path = "forge.toml") -> Self:
        """Make an app with the settings of this file."""
        return cls(Config.load(Path(path)))

    def configure(self, config: Config, *, database_url: str | None = None) -> None:
        """Replace the settings of an app that is not open, as tests do."""
        if self._sessions.is_open:
            raise InvalidValue("the app is open with the settings it has; close it first")
        self._configure(config, database_url)

    def _configure(self, config: Config, database_url: str | None) -> None:
        self._payload_warnings = PayloadWarnings(self.events)
        url = given_url(database_url) or config.database.url
        self._assemble(Sessions(config, self._telemetry, url))

    def _assemble(self, sessions: Sessions) -> None:
        """Build the parts that use settings and connections."""
        limits = sessions.config.payload
        self._sessions = sessions
        self.catalog = Catalog(
            self.definitions, limits.max_input, self._payload_warnings, sessions.run
        )
        self.dispatcher = Dispatcher(self.catalog, sessions, self)
        self.call_runner = CallRunner(self._registry, sessions, self.dispatcher, limits)
        self._schedules = Schedules(sessions, self.catalog, self.schedule_definitions, self.events)
        requests = AuditedRequests(sessions, self.catalog, self.dispatcher)
        self._dead_letters = DeadLetters(
            sessions, self.catalog, requests, ReviewJobs(reprocess, discard)
        )
        self.bulk_actions = BulkActions(self.catalog, requests, bulk_job)
        self._pauses = Pauses(sessions)
        self._workers = Workers(sessions)

    if not TYPE_CHECKING:  # type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            raise_equivalent("app", name, OF_AN_APP)
            return object.__getattribute__(self, name)  # raises the original error

    @property
    def config(self) -> Config:
        """The settings; other ones take effect with the connections that are opened next."""
        return self._sessions.config

    @config.setter
    def config(self, config: Config) -> None:
        self._sessions.config = config
        self._assemble(self._sessions)

    @property
    def is_embedded(self) -> bool:
        """Whether no database is configured, so that the app uses the embedded PostgreSQL."""
        return self._sessions.configured_url is None

    @property
    def database_url(self) -> str | None:
        """The configured URL, or that of the embedded PostgreSQL while the app is open."""
        url = self._sessions.database_url
        return url or (self.sync.database_url if "sync" in self.__dict__ else None)

    @database_url.setter
    def database_url(self, url: str | None) -> None:
        self._sessions.configured_url = url

    def take_role(self, role: str) -> None:
        """Run Forge's own statements with this database role; call it before the app is used."""
        self._sessions.role = role

    def register(self, *definitions: JobDefinition[Any, Any] | CallDefinition[Any, Any]) -> None:
        """Make these jobs, schedules, mutations and actions this app's own."""
        for definition in definitions:
            self._registry.register(definition)

    @property
    def job(self) -> "MakesJobs":
        """Define a job and register it, in one: `@app.job` or `@app.job(timeout="5m")`."""
        return self._registry.job

    @property
    def mutation(self) -> "MakesMutations":
        """Define a mutation and register it, in one: `@app.mutation`."""
        return self._registry.mutation

    @property
    def action(self) -> "MakesActions":
        """Define an action and register it, in one: `@app.action`."""
        return self._registry.action

    def schedule(
        self,
        type: str,
        /,
        *,
        every: str | timedelta | None = None,
        **attributes: "Unpack[ScheduleAttributes]",
    ) -> ScheduleDecorator:
        """Define the handler of a type of schedules and register it, in one."""
        return self._registry.schedule(type, every=every, **attributes)

    def cron(
        self,
        expression: str,
        /,
        *,
        tz: str = "UTC",
        type: str | None = None,
        **attributes: "Unpack[ScheduleAttributes]",
    ) -> ScheduleDecorator:
        """Define a function that runs by the clock and register it, in one."""
        return self._registry.cron(expression, tz=tz, type=type, **attributes)

    def middleware(self, wrap: Middleware) -> Middleware:
        """Wrap every attempt in `async def wrap(ctx, call_next)`, which awaits `call_next()`."""
        self.middlewares.append(wrap)
        return wrap

    def classify(self, exception: type[BaseException], error_class: "ErrorClass") -> None:
        """Say how errors of this type are retried."""
        self.classifier.add(exception, error_class)

    @overload
    async def dispatch(
        self,
        job: JobDefinition[In, Out],
        input: In | dict[str, Any] | None = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle[Out]: ...
    @overload
    async def dispatch(
        self,
        job: str,
        input: Any = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle[Any]: ...
    async def dispatch(
        self,
        job: JobDefinition[Any, Any] | str,
        input: Any = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle[Any]:
        """Dispatch one job; with `conn`, in the caller's transaction."""
        return await self.dispatcher.dispatch(job, input, options, conn=conn, notify=notify)

    async def dispatch_many(
        self,
        job: JobDefinition[In, Any] | str,
        inputs: Iterable[In | dict[str, Any] | None],
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[DispatchOptions]",
    ) -> int:
        """Dispatch one job per input, all or none; return the number of new jobs.

        Inputs may come from a generator: memory stays constant however many there are.
        """
        return await self.dispatcher.dispatch_many(job, inputs, options, conn=conn, notify=notify)

    async def act_for(
        self, conn: Any, *, tenant_id: int | None = None, auth: dict[str, Any] | None = None
    ) -> None:
        """Act for a tenant until the end of the connection's transaction; None is an operator.

        A connection of yours that logs in as forge_api needs it before `conn=`. With `auth` it
        writes jobs, reviews and audit rows in that name alone, whatever SQL it runs.
        """
        tenant = check_tenant(tenant_id)
        callers = Callers(self.config.auth.secret)
        caller = callers.tenant(tenant)
        if auth is not None:
            caller = callers.bound(tenant, check_dict(auth, "auth"))
        await run_on(conn, act_in_transaction(caller))

    async def call(
        self,
        call: CallDefinition[Any, Any] | str,
        input: Any = None,
        *,
        auth: dict[str, Any] | None = None,
        tenant_id: int | None = None,
        correlation_id: UUID | str | None = None,
    ) -> Any:
        """Run a mutation or an action in this process, and return what it returns."""
        return await self.call_runner.call(
            call, input, CallIdentity.of(auth, tenant_id, correlation_id)
        )

    async def get(self, job_id: UUID | str) -> JobRecord:
        """Return the current state of a job."""
        found = await self._sessions.run(jobs.get([check_uuid(job_id)]))
        if not found:
            raise UnknownJob.of(job_id)
        return JobRecord.from_row(found[0])

    async def why(self, job_id: UUID | str) -> Why:
        """Return why a job is not running: a reason, one sentence, and the facts behind it."""
        return await find_why(check_uuid(job_id), self.catalog, self.config, self._sessions.run)

    async def timeline(self, job_id: UUID | str) -> Timeline:
        """Return what happened to a job, oldest first, with its log."""
        return await read_timeline(check_uuid(job_id), self.catalog, self._sessions.run)

    async def list_jobs(
        self,
        *,
        limit: int = 50,
        cursor: UUID | str | None = None,
        q: str | None = None,
        input: Mapping[str, object] | None = None,
        **criteria: "Unpack[JobCriteria]",
    ) -> FoundJobs:
        """Return a page of jobs, newest first; `cursor` is the last page's `next_cursor`.

        `q` is a text in the input, the last error or the progress message; `input` has values by
        path, such as `{"order_id": 42}`. Both are compared with secrets redacted.
        """
        wanted = JobSearch(
            JobFilter.of(criteria), q, InputValue.all_of(input or {}), is_stored=True
        )
        after = parse_uuid(cursor, "cursor")
        return await find_jobs(self._job_reader(), wanted, check_limit(limit), after)

    def _job_reader(self) -> JobReader:
        return JobReader(self._sessions.run, self._sessions.run, self.catalog, call_on_loop)

    def handle(self, job_id: UUID | str) -> JobHandle[Any]:
        """Return the handle of a job that was dispatched earlier; its result is plain JSON."""
        return JobHandle(self, check_uuid(job_id))

    def watch_token(self, job_id: UUID | str) -> str:
        """Return a token with which a browser can follow this one job for an hour."""
        return own_watch_token(check_uuid(job_id), self.config.auth.secret)

    async def cancel(
        self,
        job_id: UUID | str,
        *,
        reason: str | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle:
        """Ask a worker to cancel a job, in any status."""
        return await self.dispatcher.dispatch(*cancelling(job_id, reason), options)

    async def delete(
        self,
        job_id: UUID | str,
        *,
        reason: str | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle:
        """Ask a worker to give up, cancel or erase a job, depending on its status."""
        return await self.dispatcher.dispatch(*deleting(job_id, reason), options)

    async def run_now(
        self,
        job_id: UUID | str,
        *,
        reason: str | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle:
        """Ask a worker to make a waiting job due at once."""
        return await self.dispatcher.dispatch(*running_now(job_id, reason), options)

    async def reschedule(
        self,
        job_id: UUID | str,
        at: When,
        *,
        reason: str | None = None,
        **options: "Unpack[DispatchOptions]",
    ) -> JobHandle:
        """Ask a worker to give a waiting job another time, or a delay such as "2h"."""
        return await self.dispatcher.dispatch(*rescheduling(job_id, at, reason), options)

    async def reprioritise(
        self,
        job_id: UUID | str,
        priority: PriorityLike,
        *,
        reason: str | None = None,
        **options: "Unpack[RequestOptions]",
    ) -> JobHandle:
        """Ask a worker to give a waiting job another priority."""
        return await self.dispatcher.dispatch(
            *reprioritising(job_id, priority, reason), cast(DispatchOptions, options)
        )

    async def move(
        self,
        job_id: UUID | str,
        queue: str,
        *,
        reason: str | None = None,
        **options: "Unpack[RequestOptions]",
    ) -> JobHandle:
        """Ask a worker to move a waiting job to another queue."""
        return await self.dispatcher.dispatch(
            *moving(job_id, queue, reason), cast(DispatchOptions, options)
        )

    async def bulk(
        self,
        action: BulkAction | str,
        filter: "SearchCriteria | None" = None,
        *,
        ids: Collection[UUID | str] | None = None,
        all: bool = False,
        reason: str,
        actor: str | None = None,
        **options: "Unpack[BulkOptions]",
    ) -> JobHandle:
        """Have a worker cancel, delete, rerun or move all jobs that match, and the like.

        The jobs are those of a `filter`, such as `{"type": "export"}`, of `ids`, or `all`. Only
        jobs that exist now are acted on. Cancel the job of the handle to stop it.
        """
        selection = BulkSelection.of(filter, ids, all)
        wanted = BulkRequest.checked(action, selection, reason, options)
        counted = await self.bulk_actions.count(wanted, self._job_reader())
        asked: DispatchOptions = {"auth": {"actor": actor}}
        if wanted.filter.tenant_id is not None:
            asked["tenant_id"] = wanted.filter.tenant_id
        return await self.bulk_actions.request(wanted, counted, asked)

    async def plan_bulk(
        self,
        action: BulkAction | str,
        filter: "SearchCriteria | None" = None,
        *,
        ids: Collection[UUID | str] | None = None,
        all: bool = False,
    ) -> BulkPlan:
        """Return how many jobs `bulk` would act on, and some of them."""
        wanted = BulkRequest.selecting(action, BulkSelection.of(filter, ids, all))
        return await self.bulk_actions.plan(wanted, self._job_reader())

    async def pause(
        self,
        type: PausedType | None = None,
        *,
        queue: str | None = None,
        for_: timedelta | str | None = None,
        until: datetime | None = None,
        reason: str,
        actor: str | None = None,
    ) -> Pause:
        """Start no more jobs of a type, of a queue, or of a type in a queue; what runs goes on.

        It ends after `for_`, at `until`, or with `resume`. A pause of the same replaces it.
        """
        pause = await self._pauses.add(
            type, queue, duration=for_, until=until, reason=reason, actor=actor
        )
        if warning := await self.pause_warning(pause):
            self.events.notice("warning", f"{pause.target} is paused: {warning}")
        return pause

    async def pause_warning(self, pause: Pause) -> str | None:
        """Return a warning if nothing that is registered has the names in a pause."""
        return await self._pauses.warning(pause)

    async def resume(
        self,
        type: PausedType | None = None,
        *,
        queue: str | None = None,
        pause_id: UUID | str | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> Pause:
        """End a pause, by its type and queue or by its id."""
        return await self._pauses.remove(type, queue, pause_id=pause_id, reason=reason, actor=actor)

    async def pauses(self) -> list[Pause]:
        """Return the pauses in effect, oldest first."""
        return await self._pauses.list()

    async def statistics(self, **filters: "Unpack[StatisticsFilters]") -> JobStatistics:
        """Return outcomes and percentiles by step: of the last hour, unless a time is given."""
        return await read_series(self._sessions.run, **filters)

    async def statistics_by_type(
        self, group: Group = "type_and_queue", **filters: "Unpack[StatisticsFilters]"
    ) -> StatisticsByType:
        """Return the totals of each job type and queue, those with the most jobs first."""
        return await read_by_type(self._sessions.run, group, **filters)

    async def backlog(self) -> list[BacklogItem]:
        """Return what waits and runs now, by type, queue and capability."""
        return await read_backlog(self._sessions.run)

    async def overview(self) -> Overview:
        """Return the state of the whole system: jobs, workers, and what needs attention."""
        # Imported here, as in findings(): few programs need it.
        from forge.operations.overview import read_overview

        return await read_overview(self._sessions)

    async def findings(self, *, include_ok: bool = False) -> list[Finding]:
        """Return what an operator should know, the most severe first.

        With `include_ok` all results in the order of the checks, also of those that passed.
        """
        from forge.operations.findings.checkup import Checkup

        findings = await Checkup(self._sessions, self._workers, REQUESTS).run()
        return findings if include_ok else most_severe_first(findings)

    async def rerun(
        self,
        job_id: UUID | str,
        patch: Any = None,
        *,
        reason: str | None = None,
        **options: "Unpack[RerunOptions]",
    ) -> JobHandle:
        """Run a final job again, as a new job with the same input or one patched by RFC 7396."""
        request = RerunRequest(check_uuid(job_id), patch, reason, options)
        made = await rerun(request, self.catalog, self._sessions.run)
        self._sessions.here().wake()
        return JobHandle(self, made)

    @property
    def workers(self) -> Workers:
        """The workers: list, drain, resume, and what each runs now."""
        return self._workers

    @property
    def schedules(self) -> Schedules:
        """The verbs of schedules: `await app.schedules.ensure("fetch_feed", "42", …)`."""
        return self._schedules

    @property
    def dead_letters(self) -> DeadLetters:
        """The jobs that need a person: list, group, reprocess, discard."""
        return self._dead_letters

    @cached_property
    def sync(self) -> "SyncForge":
        """The same verbs for code without an event loop."""
        from forge.sync.app import SyncForge

        return SyncForge(self)

    @property
    def sessions(self) -> Sessions:
        """What this app holds open, by event loop; for Forge's own use."""
        return self._sessions

    async def watcher(self) -> Watcher:
        """Return what follows jobs for this app."""
        return await self._sessions.here().watcher()

    async def session(self) -> Session:
        """Return what this app holds open in the running event loop."""
        return self._sessions.here()

    def run(self) -> None:
        """Run a worker and the HTTP server in this process until SIGTERM or Ctrl-C.

        The first signal lets jobs and requests end, the second does not. In production run them
        apart, with `forge worker` and `forge server`.
        """
        from forge.cli.processes.run_app import run_app

        run_app(self)

    async def migrate(self) -> list[str]:
        """Apply the migrations that the database lacks, and return their names.

        The rows of cron schedules (`@app.cron`) are created, too.
        """
        database = await self._sessions.database()
        applied = await migrate(database)
        await switch(database, self.config.transport)
        if self.config.server.max_pending_per_tenant is not None:
            await index_waiting(database)
        await self.schedules.plant(database.run)
        return [str(step) for step in applied]

    async def close(self) -> None:
        """Close connections and the embedded server."""
        if "sync" in self.__dict__:
            await asyncio.to_thread(self.sync.close)
        await self._sessions.close()

    async def __aenter__(self) -> Self:
        await self._sessions.database()
        await self.schedules.plant_at_start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def clone(self) -> Self:
        """Return the same app with connections of its own, for another event loop."""
        clone = copy(self)
        clone.__dict__.pop("sync", None)
        clone._assemble(self._sessions.clone())
        return clone
