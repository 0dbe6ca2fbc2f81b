"""The one way to dispatch: check the input, insert it, wake workers."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from forge.core.new_job import DispatchOptions
from forge.definitions.catalog import Catalog, RunStatement
from forge.definitions.input_encoder import InputEncoder
from forge.definitions.job import JobDefinition
from forge.jobs.batcher import DispatchBatcher
from forge.jobs.handle import HandleApp, JobHandle
from forge.jobs.prepare import BulkJobs, prepare, prepare_bulk
from forge.jobs.session import Sessions
from forge.store.borrowed import all_or_nothing, copy_on, notify_on, run_on
from forge.store.connection.database import Connection
from forge.store.jobs import Dispatched
from forge.store.notify import WAKE
from forge.store.statement import Statement
from forge.transports.postgres import MANY

Job = JobDefinition[Any, Any] | str


class Dispatcher:
    """Dispatches for Python, `app.sync`, HTTP, mutations and actions, and built-in requests.

    Jobs are inserted on connections of the app, where concurrent dispatches share a statement, or
    on a borrowed connection (`conn`).
    """

    def __init__(self, catalog: Catalog, sessions: Sessions, app: HandleApp) -> None:
        self._catalog = catalog
        self._sessions = sessions
        self._app = app

    async def dispatch(
        self,
        job: Job,
        value: Any,
        options: DispatchOptions,
        *,
        conn: Any = None,
        notify: bool = False,
        trace: str | None = None,
    ) -> JobHandle[Any]:
        """Dispatch one job and wake workers, at once or after the commit of a borrowed `conn`.

        `trace` is the trace context that came with the request to dispatch.
        """
        if conn is None:
            encoder = await self._catalog.find(job)
            batcher = await self.batcher()
            made = await batcher.insert(prepare(encoder, value, options, trace))
            return self.handle(made, job)
        made = await self.dispatch_on(conn, job, value, options, notify=notify, trace=trace)
        if not notify:
            self._sessions.here().wake_later()
        return self.handle(made, job)

    async def dispatch_many(
        self,
        job: Job,
        values: Iterable[Any],
        options: DispatchOptions,
        *,
        conn: Any = None,
        notify: bool = False,
    ) -> int:
        """Dispatch one job per input, all or none; return how many are new."""
        if conn is None:
            encoder = await self._catalog.find(job)
            async with self.transaction() as own:
                return await _insert_many(own, encoder, values, options)
        count = await self.dispatch_many_on(conn, job, values, options, notify=notify)
        if not notify:
            self._sessions.here().wake_later()
        return count

    async def batcher(self) -> DispatchBatcher:
        """Return what inserts single jobs, once it has room; await it before `prepare`."""
        session = self._sessions.here()
        batcher = session.batcher or await session.open_batcher()
        if batcher.admission.is_full:
            await batcher.admission.enter()
        return batcher

    async def insert_many(
        self, statement: Statement[list[Dispatched]], run: RunStatement
    ) -> list[Dispatched]:
        """Insert many jobs in one statement and wake workers."""
        made = await run(statement)
        self._sessions.here().wake(MANY)
        return made

    async def dispatch_on(
        self,
        conn: Any,
        job: Job,
        value: Any,
        options: DispatchOptions,
        *,
        notify: bool = False,
        trace: str | None = None,
    ) -> Dispatched:
        """Dispatch on a borrowed connection without waking workers.

        This needs an event loop only if the connection does.
        """
        encoder = await self._catalog.find(job, partial(run_on, conn))
        (made,) = await run_on(conn, prepare(encoder, value, options, trace).statement())
        if notify:
            await notify_on(conn, WAKE)
        return made

    async def dispatch_many_on(
        self,
        conn: Any,
        job: Job,
        values: Iterable[Any],
        options: DispatchOptions,
        *,
        notify: bool = False,
    ) -> int:
        """Dispatch many on a borrowed connection without waking workers, all or none."""
        encoder = await self._catalog.find(job, partial(run_on, conn))
        async with all_or_nothing(conn):
            count = await _insert_many(conn, encoder, values, options)
        if notify:
            await notify_on(conn, WAKE)
        return count

    def wake_later(self) -> None:
        """Wake workers for jobs that a caller will commit, if the app is open."""
        self._sessions.wake_later()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Connection[Any]"]:
        """Open a transaction of the app's own to dispatch in; its commit wakes workers."""
        session = self._sessions.here()
        async with (await session.database()).transaction() as connection:
            yield connection
        session.wake(MANY)

    def handle(self, made: Dispatched, job: Job) -> JobHandle[Any]:
        """Return the handle of a dispatched job."""
        return JobHandle(self._app, made.id, job, deduplicated=not made.is_new)


async def _insert_many(
    conn: Any, encoder: InputEncoder, values: Iterable[Any], options: DispatchOptions
) -> int:
    """Insert many jobs in the transaction of a connection; return how many are new."""
    bulk = prepare_bulk(encoder, values, options)
    if isinstance(bulk, BulkJobs):
        return await copy_on(conn, bulk)
    count = 0
    for statement in bulk:
        count += sum(made.is_new for made in await run_on(conn, statement))
    return count
