"""What contexts use: the runtime on the worker's own loop, or in a thread beside it."""

import asyncio
import time
from collections.abc import Awaitable, Generator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from forge.core.errors import InvalidValue
from forge.jobs.context import JobContext
from forge.store.connection.database import Connection, Database, Pool
from forge.store.connection.link import Link
from forge.store.connection.read_only import is_read_only
from forge.store.jobs import AttemptUpdate
from forge.store.statement import Statement
from forge.telemetry.metrics.external_calls import CallMeter
from forge.worker.progress import ProgressWriter

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
# Seconds within which a second heartbeat of a handler is not sent.
HEARTBEAT_DEBOUNCE = 0.5


class HandlerConnections(NamedTuple):
    """The connections that handlers use."""

    # For single statements of Forge's own.
    link: Link
    # For its transactions.
    database: Database
    # For what the handlers themselves do.
    pool: "Pool[Any]"


class LoopRuntime:
    """The runtime of `async def` handlers."""

    def __init__(
        self,
        connections: HandlerConnections,
        progress: ProgressWriter,
        meter: CallMeter,
        output_limit: int,
        log_lines: int,
    ) -> None:
        self._link, self._database, self._pool = connections
        self._progress = progress
        self._meter = meter
        self._http: httpx.AsyncClient | None = None
        self.output_limit = output_limit
        self.log_lines = log_lines
        self.in_threads = ThreadRuntime(self, asyncio.get_running_loop(), meter)

    def noted(self, context: JobContext) -> None:
        self._progress.add(context)

    async def heartbeat(self, context: JobContext) -> None:
        if context.cancelled:
            raise context.stale("heartbeat")
        if time.monotonic() - context.lived_at < HEARTBEAT_DEBOUNCE:
            return
        note = self._progress.take(context) or AttemptUpdate(
            context.job_id, context.lease, None, None, None
        )
        try:
            is_written = await self._written(context, note)
        except BaseException:  # also a cancellation: its timeout, or the handler's own
            context.put_back(note)
            raise
        if not is_written:
            raise context.stale("heartbeat")
        context.lived_at = time.monotonic()

    async def _written(self, context: JobContext, note: AttemptUpdate) -> bool:
        if context.is_noted_as_it_goes:
            return bool(await self._progress.write([note]))
        return bool(await self._link.run(context.noting(note)))

    async def run(self, statement: Statement[T]) -> T:
        return await self._link.run(statement)

    def transaction(self) -> "AbstractAsyncContextManager[Connection[Any]]":
        return self._database.transaction()

    async def is_read_only(self) -> bool:
        """Whether the database that this worker or its handlers reach accepts no writes."""
        return await is_read_only(self._link, self._pool)

    def completed(self, context: JobContext) -> None:
        """Do nothing: the context is the worker's own."""

    @property
    def pool(self) -> "Pool[Any]":
        return self._pool

    @property
    def http(self) -> "httpx.AsyncClient":
        self._http = self._http or self._meter.client()
        return self._http

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        self.in_threads.close()


class ThreadRuntime:
    """The runtime of plain functions: the same, reached from outside the loop."""

    def __init__(
        self, loop_side: LoopRuntime, loop: asyncio.AbstractEventLoop, meter: CallMeter
    ) -> None:
        self._meter = meter
        self._loop_side = loop_side
        self._loop = loop
        self._http: httpx.Client | None = None
        self.output_limit = loop_side.output_limit
        self.log_lines = loop_side.log_lines

    def noted(self, context: JobContext) -> None:
        self._loop.call_soon_threadsafe(self._loop_side.noted, context)

    def heartbeat(self, context: JobContext) -> Awaitable[None]:
        beat = self._loop_side.heartbeat(context)
        asyncio.run_coroutine_threadsafe(beat, self._loop).result()
        return DONE

    async def run(self, statement: Statement[T]) -> T:
        return await self._loop_side.run(statement)

    def transaction(self) -> "AbstractAsyncContextManager[Connection[Any]]":
        return self._loop_side.transaction()

    def completed(self, context: JobContext) -> None:
        """Do nothing: a handler in a thread has no connection to complete with."""

    @property
    def pool(self) -> "Pool[Any]":
        raise InvalidValue(
            "ctx.db belongs to the event loop; in a plain function open a connection of your own, "
            "or make the handler `async def`"
        )

    @property
    def http(self) -> "httpx.Client":
        self._http = self._http or self._meter.blocking_client()
        return self._http

    def close(self) -> None:
        if self._http is not None:
            self._http.close()


class _Done:
    """Awaitable, and done already: what is called in a thread need not be awaited."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


DONE = _Done()
