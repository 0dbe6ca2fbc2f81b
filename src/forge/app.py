"""Forge: puts the parts together and offers the verbs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from forge import dispatch as dispatching
from forge.calls.definition import CallDefinition
from forge.calls.verbs import Calls
from forge.catalog import Catalog
from forge.classify import Classifier
from forge.config import Config, given_or_loaded, given_url
from forge.core.errors import InvalidValue, UnknownJob
from forge.core.record import JobRecord
from forge.core.wish import Options, check_dict, check_tenant, check_uuid
from forge.dead_letters import DeadLetters
from forge.handle import JobHandle
from forge.job_type import JobType
from forge.lookout import Lookout
from forge.registry import In, JobDefinition, job
from forge.requesting import Requesting
from forge.requests import QUEUE
from forge.schedules.definition import ScheduleDefinition
from forge.schedules.recurring import Recurring
from forge.session import Session
from forge.signature import Handler
from forge.store import jobs
from forge.store.borrowed import all_or_nothing, notify_on, run_on
from forge.store.jobs import Dispatched
from forge.store.migrate import index_waiting, migrate
from forge.store.notify import WAKE
from forge.store.tenant import Callers, act_in_transaction
from forge.telemetry.measured import Measured
from forge.transports.switch import switch
from forge.waker import MANY
from forge.watch import Watcher

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from forge.core.retry import ErrorClass
    from forge.decorator import MakesJobs
    from forge.store.database import Connection
    from forge.sync import SyncForge

Middleware = Callable[[Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]


class Forge(Calls, Recurring, Requesting, Measured):
    """An application's jobs and the database they live in.

    Without a configured database it starts the embedded PostgreSQL when it is first used.
    """

    def __init__(self, config: Config | None = None, *, database_url: str | None = None) -> None:
        Calls.__init__(self)
        Recurring.__init__(self)
        Measured.__init__(self)
        self.definitions: dict[str, JobDefinition[Any, Any]] = {}
        self.middlewares: list[Middleware] = []
        self.classifier = Classifier()
        self._session: Session | None = None
        # The database role that Forge's own statements take.
        self._role: str | None = None
        self.configure(given_or_loaded(config), database_url=database_url)

    @classmethod
    def from_file(cls, path: str | Path = "forge.toml") -> Self:
        """Make an app with the settings of this file."""
        return cls(Config.load(Path(path)))

    def configure(self, config: Config, *, database_url: str | None = None) -> None:
        """Take other settings, as tests do with an application's own app, while it is not open."""
        if self._session is not None:
            raise InvalidValue("the app is open with the settings it has; close it first")
        self.config = config
        self._database_url = given_url(database_url) or config.database.url
        self._catalog = Catalog(self.definitions, config.payload.max_input, Lookout(self.events))

    @property
    def is_embedded(self) -> bool:
        """Whether no database is configured, so that the app uses the embedded PostgreSQL."""
        return self._database_url is None

    @property
    def database_url(self) -> str | None:
        """The configured URL, or that of the embedded PostgreSQL while the app is open."""
        if self._database_url is not None:
            return self._database_url
        own = None if self._session is None else self._session.embedded_url
        return own or (self.sync.database_url if "sync" in self.__dict__ else None)

    @database_url.setter
    def database_url(self, url: str | None) -> None:
        self._database_url = url

    def register(self, *definitions: JobDefinition[Any, Any] | CallDefinition[Any, Any]) -> None:
        """Make these jobs, schedules, mutations and actions this app's own."""
        for definition in definitions:
            match definition:
                case CallDefinition():
                    self._register_call(definition)
                case ScheduleDefinition():
                    self._register_schedule(definition)
                case JobDefinition():
                    self._register_job(definition)
                case _:
                    raise InvalidValue(
                        "app.register takes what @forge.job and its like have made, not "
                        f"{definition!r}; decorate it first"
                    )

    def _register_job(self, definition: JobDefinition[Any, Any]) -> None:
        known = self.definitions.get(definition.name)
        if known is not None and known is not definition:
            raise InvalidValue(
                f"there are two jobs named {definition.name!r}; give one another name with "
                "@forge.job(name=…)"
            )
        if definition.name.startswith("forge."):
            raise InvalidValue(f"{definition.name!r}: names in forge.* are Forge's; choose another")
        definition.app = self
        self.definitions[definition.name] = definition

    @property
    def job(self) -> "MakesJobs":
        """Define a job and register it, in one: `@app.job` or `@app.job(timeout="5m")`."""
        return self._job

    def _job(self, handler: Handler | None = None, /, **attributes: Any) -> Any:
        if handler is not None:
            return self._registered(JobDefinition(handler))
        make = job(**attributes)
        return lambda handler: self._registered(make(handler))

    def _registered(self, definition: JobDefinition[Any, Any]) -> JobDefinition[Any, Any]:
        self._register_job(definition)
        return definition

    def middleware(self, wrap: Middleware) -> Middleware:
        """Wrap every attempt in `async def wrap(ctx, call_next)`, which awaits `call_next()`."""
        self.middlewares.append(wrap)
        return wrap

    def classify(self, exception: type[BaseException], error_class: "ErrorClass") -> None:
        """Say how errors of this type are to be retried."""
        self.classifier.add(exception, error_class)

    async def dispatch(
        self,
        job: JobDefinition[In, Any] | str,
        input: In | dict[str, Any] | None = None,
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[Options]",
    ) -> JobHandle:
        """Ask for one call of a job, in the caller's transaction where `conn` is given."""
        session = self._session_here()
        if conn is None:
            kind = await self._job_type(job, None)
            (made,) = await (await session.database()).run(dispatching.one(kind, input, options))
            session.wake(is_request=kind.defaults.queue == QUEUE)
        else:
            made = await self._one_on(conn, job, input, options, notify)
            if not notify:
                session.wake_later()
        return JobHandle(self, made.id, deduplicated=not made.is_new)

    async def dispatch_many(
        self,
        job: JobDefinition[In, Any] | str,
        inputs: Iterable[In | dict[str, Any] | None],
        *,
        conn: Any = None,
        notify: bool = False,
        **options: "Unpack[Options]",
    ) -> int:
        """Ask for one call per input: all are dispatched, or none. Returns how many are new.

        Inputs may come from a generator: memory stays constant however many there are.
        """
        session = self._session_here()
        if conn is None:
            kind = await self._job_type(job, None)
            async with self._transaction() as connection:
                return await dispatching.many_on(connection, kind, inputs, options)
        count = await self._many_on(conn, job, inputs, options, notify)
        if not notify:
            session.wake_later()
        return count

    async def _one_on(
        self,
        conn: Any,
        job: JobDefinition[Any, Any] | str,
        input: Any,
        options: Options,
        notify: bool,
    ) -> Dispatched:
        """Dispatch on a borrowed connection; needs an event loop only if the connection does."""
        made = await dispatching.one_on(conn, await self._job_type(job, conn), input, options)
        if notify:
            await notify_on(conn, WAKE)
        return made

    async def _many_on(
        self,
        conn: Any,
        job: JobDefinition[Any, Any] | str,
        inputs: Iterable[Any],
        options: Options,
        notify: bool,
    ) -> int:
        """Dispatch many on a borrowed connection, all or none, whatever the caller then does."""
        kind = await self._job_type(job, conn)
        async with all_or_nothing(conn):
            count = await dispatching.many_on(conn, kind, inputs, options)
        if notify:
            await notify_on(conn, WAKE)
        return count

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator["Connection[Any]"]:
        """Hold a transaction for what is dispatched in it; the workers hear of its commit."""
        session = self._session_here()
        async with (await session.database()).transaction() as connection:
            yield connection
        session.wake(MANY)

    async def act_for(
        self, conn: Any, *, tenant_id: int | None = None, auth: dict[str, Any] | None = None
    ) -> None:
        """Act for a tenant until the end of the connection's transaction; None is an operator.

        A connection of yours that logs in as forge_api needs it before `conn=`. With `auth` it
        writes jobs, reviews and audit rows in that name alone, whatever SQL it runs.
        """
        tenant = check_tenant(tenant_id)
        callers = self._callers()
        caller = callers.tenant(tenant)
        if auth is not None:
            caller = callers.bound(tenant, check_dict(auth, "auth"))
        await run_on(conn, act_in_transaction(caller))

    def _callers(self) -> Callers:
        return Callers(self.config.auth.secret)

    async def get(self, job_id: UUID | str) -> JobRecord:
        """Return a job as it stands now."""
        wanted = jobs.get([check_uuid(job_id)])
        found = await (await self._session_here().database()).run(wanted)
        if not found:
            raise UnknownJob.of(job_id)
        return JobRecord.from_row(found[0])

    def handle(self, job_id: UUID | str) -> JobHandle:
        """Return the handle of a job that was dispatched earlier."""
        return JobHandle(self, check_uuid(job_id))

    @property
    def dead_letters(self) -> DeadLetters:
        """The jobs that need a person: list, group, reprocess, discard."""
        return DeadLetters(self)

    @cached_property
    def sync(self) -> "SyncForge":
        """The same verbs for code without an event loop."""
        from forge.sync import SyncForge

        return SyncForge(self)

    async def watcher(self) -> Watcher:
        """Return what follows jobs for this app."""
        return await self._session_here().watcher()

    async def session(self) -> Session:
        """Return what this app holds open in the running event loop."""
        return self._session_here()

    def run(self) -> None:
        """Run a worker and the HTTP server in this process until SIGTERM or Ctrl-C.

        The first signal lets jobs and requests end, the second does not. In production run them
        apart, with `forge worker` and `forge server`.
        """
        from forge.cli.run_app import run_app

        run_app(self)

    async def migrate(self) -> list[str]:
        """Apply the migrations that the database lacks, and return their names.

        The rows of what runs by the clock (`@app.cron`) are made, too.
        """
        database = await self._session_here().database()
        applied = await migrate(database)
        await switch(database, self.config.transport)
        if self.config.server.max_pending_per_tenant is not None:
            await index_waiting(database)
        await self.schedules.plant(database.run)
        return [str(step) for step in applied]

    async def close(self) -> None:
        """Let go of connections and of the embedded server."""
        if "sync" in self.__dict__:
            await asyncio.to_thread(self.sync.close)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> Self:
        await self._session_here().database()
        await self.schedules.plant_at_start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _twin(self) -> Self:
        """Return the same app with connections of its own, for another event loop."""
        twin = copy(self)
        twin._session = None
        twin.__dict__.pop("sync", None)
        return twin

    def _wake_later(self) -> None:
        """Tell idle workers of what somebody else will commit, if this app is open here."""
        if self._session is not None:
            self._session.wake_later()

    def _session_here(self) -> Session:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.loop is not loop:
            # Connections belong to the loop that opened them; another loop opens its own.
            self._session = Session(loop, self.config, self._database_url, self, self._role)
        return self._session

    async def _job_type(self, job: JobDefinition[Any, Any] | str, conn: Any) -> JobType:
        if conn is not None:
            return await self._catalog.find(job, partial(run_on, conn))
        return await self._catalog.find(job, (await self._session_here().database()).run)
