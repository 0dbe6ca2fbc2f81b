"""A stage for the batcher: an app, a way to stall the database, and a record of statements."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from forge import Forge, JobContext, JobHandle
from forge.core.errors import ForgeError, StatementRefused
from forge.jobs.batcher import DispatchBatcher
from forge.store.statement import Statement, name_of
from tests.apps import MakeApp
from tests.faults.kit.process import until

TIMEOUT = 10


class Stage:
    """Dispatches jobs of one type, which wait together while the table is locked."""

    def __init__(self, app: Forge, psql: "asyncpg.Connection[Any]") -> None:
        self.app = app
        self.psql = psql
        # The rows of each insert that was committed.
        self.inserts: list[int] = []
        # How many inserts the database refused.
        self.refused = 0
        app.observers.append(self._observe)

        @app.job
        async def greet(ctx: JobContext, input: dict[str, Any]) -> None: ...

    @property
    async def batcher(self) -> DispatchBatcher:
        return await (await self.app.session()).open_batcher()

    async def use(self, batcher: type[DispatchBatcher]) -> None:
        """Dispatch with another batcher."""
        session = await self.app.session()
        database = await session.database()
        session.batcher = batcher(database.run, session.wake, database.pool_size)

    async def run(self, statement: Statement[Any], tenant: int | None = None) -> Any:
        """Run a statement on a connection of the app."""
        return await (await (await self.app.session()).database()).run(statement, tenant)

    def dispatch(self, name: str, **options: Any) -> "asyncio.Task[JobHandle[Any]]":
        return asyncio.create_task(self.app.dispatch("greet", {"name": name}, **options))

    @asynccontextmanager
    async def stalled(self) -> AsyncIterator[None]:
        """Let no insert end during the block."""
        async with self.psql.transaction():
            await self.psql.execute("lock table forge_jobs in share mode")
            yield

    async def dispatch_together(
        self, names: list[str], **options: Any
    ) -> "list[asyncio.Task[JobHandle[Any]]]":
        """Dispatch while the table is locked, so that all but the first wait for one insert."""
        async with self.stalled():
            return await self.start(names, **options)

    async def start(self, names: list[str], **options: Any) -> "list[asyncio.Task[JobHandle[Any]]]":
        """Start dispatches, and wait until the first ones are sent and the others wait."""
        batcher = await self.batcher
        first = self.dispatch("first", **options)
        await self.until_blocked(1)
        second = self.dispatch("second", **options)
        await self.until_blocked(2)
        calls = [self.dispatch(name, **options) for name in names]
        await until(lambda: batcher.admission.waiting >= len(names), TIMEOUT, "the calls wait")
        return [first, second, *calls]

    async def until_blocked(self, count: int) -> None:
        """Wait until this many inserts wait for the lock."""

        async def is_blocked() -> bool:
            blocked = await self.psql.fetchval(
                "select count(*) from pg_locks "
                "where not granted and relation = 'forge_jobs'::regclass"
            )
            return bool(blocked == count)

        await until(is_blocked, TIMEOUT, f"{count} inserts are blocked")

    async def until_waiting_for_keys(self, count: int) -> None:
        """Wait until this many inserts wait for a transaction that holds their keys."""

        async def is_waiting() -> bool:
            waiting = await self.psql.fetchval(
                "select count(*) from pg_locks where not granted and locktype = 'transactionid'"
            )
            return bool(waiting == count)

        await until(is_waiting, TIMEOUT, f"{count} inserts wait for keys")

    async def names(self) -> set[str]:
        """Return the names in the table."""
        rows = await self.psql.fetch("select input ->> 'name' as name from forge_jobs")
        return {row["name"] for row in rows}

    def _observe(self, statement: Statement[Any], _: float, error: ForgeError | None) -> None:
        if not name_of(statement).startswith("jobs/dispatch"):
            return
        if error is None:
            ids = statement.args[0]
            self.inserts.append(len(ids) if isinstance(ids, list) else 1)
        elif isinstance(error, StatementRefused):
            self.refused += 1


@pytest.fixture
async def stage(make_app: MakeApp, psql: Any) -> Stage:
    stage = Stage(make_app(), psql)
    await (await stage.app.session()).database()
    return stage


async def ended(calls: "list[asyncio.Task[Any]]") -> list[Any]:
    """Wait for calls; return their results and errors."""
    async with asyncio.timeout(TIMEOUT):
        return await asyncio.gather(*calls, return_exceptions=True)
