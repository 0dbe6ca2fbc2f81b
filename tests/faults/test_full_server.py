"""The server has no free connection: heartbeats continue, and no live worker is declared dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge import Config, Forge
from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from forge.store.roles import grant_roles
from forge.store.statement import load
from tests.faults.apps.handlers import gated
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until
from tests.faults.kit.server import running_server
from tests.faults.kit.worker_processes import WorkerProcess, Workers

# The header comment, as pg_stat_activity shows it.
HEARTBEAT = load("workers/beat").splitlines()[0] + "%"
PACE = {"dead_after": "2s", "heartbeat_interval": "400ms", "max_concurrent": 1}


@pytest.fixture
async def small() -> AsyncIterator[Cluster]:
    """A server with few connections, the last three reserved for superusers."""
    with running_server(fsync="off", max_connections="30") as server:
        database = Database(server.url())
        await migrate(database)
        await grant_roles(database)
        async with database.acquire() as connection:
            await connection.execute("alter role forge_worker login")
        await database.close()
        yield server


@pytest.fixture
async def ledger(small: Cluster) -> AsyncIterator[Ledger]:
    """Uses a superuser's connection, because three are reserved for superusers."""
    connection = await asyncpg.connect(small.url())
    yield Ledger(connection)
    await connection.close()


@pytest.fixture
async def workers(small: Cluster, history: History, tmp_path: Path) -> AsyncIterator[Workers]:
    with Workers(small.url(), history, tmp_path) as workers:
        yield workers


async def test_the_heartbeat_uses_any_open_connection(
    small: Cluster, workers: Workers, ledger: Ledger, history: History, gate: Gate
) -> None:
    """Fault 22: the heartbeat's connection is lost, and another client takes its slot."""
    (job,) = await _dispatch(small, gate, 1)
    worker = await _start(small, workers)
    await until_started(history, job)

    async with _filled(small):
        await until(lambda: _is_full(small), 30, "no connection is left")
        before = await _sessions(ledger, worker)
        heartbeat = await _sessions(ledger, worker, HEARTBEAT)
        assert len(heartbeat) == 1
        await ledger.connection.execute("select pg_terminate_backend($1)", *heartbeat)
        await ledger.until_beating(worker.id, 8)
        assert await _sessions(ledger, worker) == before - heartbeat, (
            "it has got no other connection"
        )
    gate.open()

    (row,) = await ledger.until_final([job])
    assert (row["status"], row["lease"], row["crashes"]) == ("completed", 1, 0)


async def test_no_worker_is_declared_dead_while_the_server_is_full(
    small: Cluster, workers: Workers, ledger: Ledger, history: History, gate: Gate
) -> None:
    """Fault 56: one worker loses all its connections and cannot get any."""
    jobs = await _dispatch(small, gate, 2)
    shut_out, other = await _start(small, workers), await _start(small, workers)
    for job in jobs:
        await until_started(history, job)

    async with _filled(small):
        await _until_shut_out(shut_out, ledger)
        last = "select now() - last_heartbeat > '5 s' from forge_workers where id = $1"
        await until(
            lambda: ledger.connection.fetchval(last, shut_out.id), 60, "it is silent for long"
        )
        await ledger.until_beating(other.id, 5)
        assert not other.reported("rescued")
    await ledger.until_beating(shut_out.id, 2)
    gate.open()

    rows = await ledger.until_final(jobs)
    assert [(row["status"], row["crashes"]) for row in rows] == [("completed", 0)] * 2
    assert not other.reported("rescued")


async def _dispatch(server: Cluster, gate: Gate, count: int) -> list[UUID]:
    async with Forge(Config(), database_url=server.url()) as app:
        return [(await app.dispatch(gated, gate.input)).id for _ in range(count)]


async def _start(server: Cluster, workers: Workers) -> WorkerProcess:
    id = uuid4()
    url = f"{server.url(user='forge_worker')}&application_name={id}"
    return await workers.start(url=url, id=id, **PACE)


@asynccontextmanager
async def _filled(server: Cluster) -> AsyncIterator[None]:
    """Occupy every connection, also those that become free."""
    taken: list[asyncpg.Connection] = []

    async def take() -> None:
        while True:
            try:
                taken.append(await asyncpg.connect(server.url(user="forge_api")))
            except asyncpg.PostgresError:
                await asyncio.sleep(0.001)

    url = server.url("postgres")
    admin = await asyncpg.connect(url)
    await admin.execute("alter role forge_api login")
    await admin.close()
    takers = [asyncio.create_task(take()) for _ in range(8)]
    try:
        yield
    finally:
        for taker in takers:
            taker.cancel()
        await asyncio.wait(takers)
        for connection in taken:
            connection.terminate()


async def _is_full(server: Cluster) -> bool:
    try:
        connection = await asyncpg.connect(server.url(user="forge_api"))
    except asyncpg.PostgresError:
        return True
    connection.terminate()
    return False


async def _sessions(ledger: Ledger, worker: WorkerProcess, query: str = "%") -> set[int]:
    own = "select pid from pg_stat_activity where application_name = $1 and query like $2"
    return {row["pid"] for row in await ledger.connection.fetch(own, str(worker.id), query)}


async def _until_shut_out(worker: WorkerProcess, ledger: Ledger) -> None:
    """Terminate a worker's connections until other clients hold all slots."""

    async def is_shut_out() -> bool:
        left = await _sessions(ledger, worker)
        for pid in left:
            await ledger.connection.execute("select pg_terminate_backend($1)", pid)
        reported = worker.reported("notice", message="a heartbeat was lost")
        return not left and any("no connection left" in str(line["detail"]) for line in reported)

    await until(is_shut_out, 60, "the worker finds no connection")
