"""Connections that die without FIN or RST: no statement and no handler waits on them for long."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import asyncpg
import psutil
import pytest

from forge import Config, DatabaseUnavailable, Forge
from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from tests.faults.apps.databases import by_pool, holding, in_its_transaction
from tests.faults.apps.handlers import quick
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.server import running_server
from tests.faults.kit.standby import promote, standby_of
from tests.faults.kit.worker_processes import Workers

# Shorter than the statement timeout of 30 s, and far shorter than a handler's.
RECOVERY_TIMEOUT = 20
PACE = {"heartbeat_interval": "1s", "dead_after": "6s"}
WORK = {"hangs": False}


async def test_a_worker_recovers_when_a_firewall_drops_its_connections(
    app: Forge, workers: Workers, ledger: Ledger, history: History, gate: Gate, proxy: Proxy
) -> None:
    """Fault 52: open connections are silent, new ones work."""
    worker = await workers.start(url=proxy.url(), **PACE)
    held = await app.dispatch(holding, {**gate.input, **WORK})
    await until_started(history, held.id)
    await until(lambda: _is_holding(ledger.connection), 30, "the handler holds a connection")
    await _fill_pool(app, ledger, gate)

    assert proxy.silence() > 4
    gate.open()
    fresh = [
        (await app.dispatch(job, {**gate.input, **WORK})).id
        for job in (by_pool, in_its_transaction)
    ]

    rows = await ledger.until_final([*fresh, held.id], timeout=RECOVERY_TIMEOUT)
    assert [row["status"] for row in rows] == ["completed"] * 3
    assert [row["attempts"] for row in rows] == [1] * 3
    assert rows[2]["lease"] == 2, "the attempt on a dead connection was released and run again"
    assert [past["outcome"] for past in await ledger.attempts(held.id)] == ["lost"]
    assert not worker.reported("rescued")
    assert worker.reported("notice", message="database connections died without an error")


async def test_a_worker_recovers_after_a_failover_from_a_frozen_primary(
    history: History, gate: Gate, tmp_path: Path
) -> None:
    """Fault 52: the old primary is frozen, its kernel acknowledges, a standby replaces it."""
    with running_server(fsync="off") as primary:
        database = Database(primary.url())
        await migrate(database)
        await database.close()
        with standby_of(primary) as standby:
            async with _workers_by_proxy(primary, history, tmp_path) as (workers, proxy):
                await workers.start(url=proxy.url(), **PACE)
                async with Forge(Config(), database_url=primary.url()) as app:
                    held = await app.dispatch(holding, {**gate.input, **WORK})
                await until_started(history, held.id)
                await _until_replicated(primary, standby)

                with _frozen(primary):
                    await promote(standby)
                    proxy.point_at(standby.url(tcp=True))
                    gate.open()
                    async with Forge(Config(), database_url=standby.url()) as app:
                        fresh = (await app.dispatch(by_pool, {**gate.input, **WORK})).id
                        ledger = Ledger(await asyncpg.connect(standby.url()))
                        rows = await ledger.until_final([fresh, held.id], timeout=RECOVERY_TIMEOUT)
                        await ledger.connection.close()

    assert [(row["status"], row["attempts"]) for row in rows] == [("completed", 1)] * 2


async def test_a_worker_behind_a_pooler_recovers(
    app: Forge, workers: Workers, ledger: Ledger, proxy: Proxy
) -> None:
    """Fault 52: session ids mean nothing behind a pooler, so the worker opens a new connection."""
    await workers.start(url=proxy.url(), pooler=True, **PACE)
    before = await app.dispatch(quick)
    await ledger.until_final([before.id])

    assert proxy.silence() > 1

    after = await app.dispatch(quick)
    await ledger.until_final([after.id], timeout=RECOVERY_TIMEOUT)


async def test_a_dispatcher_detects_a_dead_connection_and_replaces_the_pool(
    app: Forge, proxy: Proxy
) -> None:
    """Fault 52: a web process sends no heartbeat that would detect it."""
    async with Forge(Config(), database_url=proxy.url()) as web:
        await _open_connections(web, 5)
        assert proxy.silence() == 5

        async with asyncio.timeout(RECOVERY_TIMEOUT):
            with pytest.raises(DatabaseUnavailable):
                await web.dispatch(quick)
            await asyncio.gather(*(_until_dispatched(web) for _ in range(8)))


async def test_a_slow_statement_is_not_interrupted(proxy: Proxy) -> None:
    """The server reports the statement as active, so the connection is not lost."""
    database = Database(proxy.url())
    try:
        pool = await database.users()
        async with database.acquire() as connection, asyncio.timeout(30):
            await asyncio.gather(
                connection.fetchval("select pg_sleep(6)"), pool.fetchval("select pg_sleep(6)")
            )
    finally:
        await database.close()


async def test_a_handler_with_an_idle_connection_is_not_interrupted(
    app: Forge, workers: Workers, ledger: Ledger, history: History, gate: Gate, proxy: Proxy
) -> None:
    """Other connections of the process die; this one has no pending statement."""
    await workers.start(url=proxy.url(), **PACE)
    held = await app.dispatch(holding, {**gate.input, **WORK})
    await until_started(history, held.id)
    await until(lambda: _is_holding(ledger.connection), 30, "the handler holds a connection")

    await until(lambda: proxy.silence(matching="pg_notify($14, '')"), 30, "the heart has beaten")
    again = "a heartbeat was sent again by another connection"
    await workers.processes[0].until_reported("notice", message=again)
    done = await app.dispatch(quick)
    await ledger.until_final([done.id], timeout=RECOVERY_TIMEOUT)
    gate.open()

    (row,) = await ledger.until_final([held.id], timeout=RECOVERY_TIMEOUT)
    assert (row["status"], row["lease"]) == ("completed", 1)


async def test_a_silent_database_is_not_reported_as_a_full_pool(proxy: Proxy) -> None:
    config = Config(database={"pool_size": 1, "connect_timeout": "2s"})
    async with Forge(config, database_url=proxy.url()) as web:
        job = await web.dispatch(quick)
        proxy.silence()

        errors = await asyncio.gather(*(web.get(job.id) for _ in range(3)), return_exceptions=True)

    assert all(isinstance(error, DatabaseUnavailable) for error in errors), errors
    assert not any("pool_size" in str(error) for error in errors), errors


async def _fill_pool(app: Forge, ledger: Ledger, gate: Gate) -> None:
    """Leave idle connections in the handlers' pool and in the app's pool."""
    opened = Gate(gate.path.with_name("open"))
    opened.open()
    jobs = [await app.dispatch(by_pool, {**opened.input, **WORK}) for _ in range(3)]
    await ledger.until_final([job.id for job in jobs])


async def _open_connections(app: Forge, count: int) -> None:
    """Leave idle connections in the app's pool: held at once, so that no two are the same one."""
    database = await (await app.session()).database()
    async with AsyncExitStack() as held:
        for _ in range(count):
            await held.enter_async_context(database.acquire())


async def _is_holding(connection: asyncpg.Connection) -> bool:
    holds = "select count(*) from pg_stat_activity where state = 'idle in transaction'"
    return bool(await connection.fetchval(holds))


async def _until_dispatched(app: Forge) -> None:
    while True:
        try:
            await app.dispatch(quick)
            return
        except DatabaseUnavailable:
            await asyncio.sleep(0.1)  # as a client that retries


@asynccontextmanager
async def _workers_by_proxy(
    server: Cluster, history: History, folder: Path
) -> AsyncIterator[tuple[Workers, Proxy]]:
    async with await Proxy.open(server.url(tcp=True)) as proxy:
        with Workers(server.url(), history, folder) as workers:
            yield workers, proxy


async def _until_replicated(primary: Cluster, standby: Cluster) -> None:
    ours, theirs = await asyncpg.connect(primary.url()), await asyncpg.connect(standby.url())
    position = await ours.fetchval("select pg_current_wal_lsn()::text")

    async def is_there() -> bool:
        behind = "select pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
        return bool(await theirs.fetchval(behind, position))

    await until(is_there, 30, "the standby has everything")
    await ours.close()
    await theirs.close()


@contextmanager
def _frozen(server: Cluster) -> Iterator[None]:
    """Stop every process of a server; its kernel still acknowledges packets."""
    assert server.pid is not None
    main = psutil.Process(server.pid)
    processes = [main, *main.children(recursive=True)]
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            # The first ones to go on may end the others.
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
