"""The server has no connection left: living workers go on beating, and none is judged dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge import Config, Forge
from forge.store.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from forge.store.roles import grant_roles
from tests.faults.apps.handlers import gated
from tests.faults.kit.crew import Crew, WorkerProcess
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until
from tests.faults.kit.server import running_server

PACE = {"dead_after": "2s", "heartbeat_interval": "400ms", "max_concurrent": 1}


@pytest.fixture
async def small() -> AsyncIterator[Cluster]:
    """A server with few connections, of which a superuser alone may use the last three."""
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
    """By a superuser, for whom there is always a connection."""
    connection = await asyncpg.connect(small.url())
    yield Ledger(connection)
    await connection.close()


@pytest.fixture
async def crew(small: Cluster, history: History, tmp_path: Path) -> AsyncIterator[Crew]:
    crew = Crew(small.url(), history, tmp_path)
    yield crew
    print(crew.log())
    crew.close()


async def test_any_open_link_carries_the_heartbeat(
    small: Cluster, crew: Crew, ledger: Ledger, history: History, gate: Gate
) -> None:
    """Fault 22: the heartbeat's own connection is lost, and its place is taken."""
    (job,) = await _dispatch(small, gate, 1)
    worker = await _start(small, crew)
    await until_started(history, job)

    async with _filled(small):
        await until(lambda: _is_full(small), 30, "no connection is left")
        before = await _sessions(ledger, worker)
        heart = await _sessions(ledger, worker, "-- A worker lives%")
        assert len(heart) == 1
        await ledger.connection.execute("select pg_terminate_backend($1)", *heart)
        await ledger.until_beating(worker.id, 8)
        assert await _sessions(ledger, worker) == before - heart, "it has got no other connection"
    gate.open()

    (row,) = await ledger.until_final([job])
    assert (row["status"], row["lease"], row["crashes"]) == ("completed", 1, 0)


async def test_no_worker_is_judged_dead_while_the_server_is_full(
    small: Cluster, crew: Crew, ledger: Ledger, history: History, gate: Gate
) -> None:
    """Fault 56: one worker loses all its connections and cannot get any."""
    jobs = await _dispatch(small, gate, 2)
    shut_out, judge = await _start(small, crew), await _start(small, crew)
    for job in jobs:
        await until_started(history, job)

    async with _filled(small):
        await _until_shut_out(shut_out, ledger)
        last = "select now() - last_heartbeat > '5 s' from forge_workers where id = $1"
        await until(
            lambda: ledger.connection.fetchval(last, shut_out.id), 60, "it is silent for long"
        )
        await ledger.until_beating(judge.id, 5)
        assert not judge.said("rescued")
    await ledger.until_beating(shut_out.id, 2)
    gate.open()

    rows = await ledger.until_final(jobs)
    assert [(row["status"], row["crashes"]) for row in rows] == [("completed", 0)] * 2
    assert not judge.said("rescued")


async def _dispatch(server: Cluster, gate: Gate, count: int) -> list[UUID]:
    async with Forge(Config(), database_url=server.url()) as app:
        return [(await app.dispatch(gated, gate.input)).id for _ in range(count)]


async def _start(server: Cluster, crew: Crew) -> WorkerProcess:
    id = uuid4()
    url = f"{server.url(user='forge_worker')}&application_name={id}"
    return await crew.start(url=url, id=id, **PACE)


@asynccontextmanager
async def _filled(server: Cluster) -> AsyncIterator[None]:
    """Take every connection there is, and each that becomes free."""
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
    """End a worker's connections until others have taken their places."""

    async def is_shut_out() -> bool:
        left = await _sessions(ledger, worker)
        for pid in left:
            await ledger.connection.execute("select pg_terminate_backend($1)", pid)
        said = worker.said("notice", message="a heartbeat was lost")
        return not left and any("no connection left" in str(line["detail"]) for line in said)

    await until(is_shut_out, 60, "the worker finds no connection")
