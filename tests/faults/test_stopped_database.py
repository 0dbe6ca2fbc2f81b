"""The database stops while handlers run: no attempt is used, with any driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from forge import Config, Forge
from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from tests.faults.apps.databases import DRIVERS, HANG
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, until_started
from tests.faults.kit.process import until
from tests.faults.kit.server import running_server
from tests.faults.kit.worker_processes import WorkerProcess, Workers

HANGING = "select count(*) from pg_stat_activity where state = 'active' and query = $1"


@pytest.fixture
def own() -> Iterator[Cluster]:
    with running_server(fsync="off") as server:
        yield server


@pytest.fixture
async def worker(own: Cluster, history: History, tmp_path: Path) -> AsyncIterator[WorkerProcess]:
    database = Database(own.url())
    await migrate(database)
    await database.close()
    with Workers(own.url(), history, tmp_path) as workers:
        yield await workers.start(jobs=[driver.name for driver in DRIVERS], dead_after="3s")


@pytest.mark.parametrize("how", ["fast", "immediate"])
async def test_an_attempt_stopped_in_a_statement_is_released(
    how: str, own: Cluster, worker: WorkerProcess, history: History, gate: Gate
) -> None:
    """Fault 17: the only attempt of each job runs when the server is back."""
    gate.open()
    ids = await _dispatch(own, {**gate.input, "hangs": True})
    await until(lambda: _all_hang(own), 30, "all are in a statement")

    await asyncio.to_thread(own.stop, how)
    await _until_ended(history, ids)
    await asyncio.to_thread(own.start)

    await _check_no_attempt_used(own, worker, ids)


async def test_an_attempt_without_a_server_is_released(
    own: Cluster, worker: WorkerProcess, history: History, gate: Gate
) -> None:
    """Fault 17: the handler's first connection is refused."""
    ids = await _dispatch(own, {**gate.input, "hangs": False})
    for id in ids:
        await until_started(history, id)

    await asyncio.to_thread(own.stop, "fast")
    gate.open()
    await _until_ended(history, ids)
    await asyncio.to_thread(own.start)

    await _check_no_attempt_used(own, worker, ids)


async def _dispatch(server: Cluster, input: dict[str, Any]) -> list[UUID]:
    """Dispatch one job per driver, in order."""
    async with Forge(Config(), database_url=server.url()) as app:
        with_url = {**input, "url": server.url()}
        return [(await app.dispatch(driver, with_url)).id for driver in DRIVERS]


async def _all_hang(server: Cluster) -> bool:
    connection = await asyncpg.connect(server.url())
    try:
        return await connection.fetchval(HANGING, HANG) == len(DRIVERS)
    finally:
        await connection.close()


async def _until_ended(history: History, ids: list[UUID]) -> None:
    for id in ids:
        await until(lambda id=id: events_of(history, id, Kind.FINISHED), 30, f"{id} has ended")


async def _check_no_attempt_used(server: Cluster, worker: WorkerProcess, ids: list[UUID]) -> None:
    connection = await asyncpg.connect(server.url())
    ledger = Ledger(connection)
    try:
        rows = await ledger.until_final(ids)
        outcomes = [[past["outcome"] for past in await ledger.attempts(id)] for id in ids]
    finally:
        await connection.close()
    for driver, row, past in zip(DRIVERS, rows, outcomes, strict=True):
        what = f"{driver.name}: {row['last_error']}"
        assert (row["status"], row["lease"], row["attempts"]) == ("completed", 2, 1), what
        assert (row["crashes"], row["suspect"], past) == (1, False, ["lost"]), what
        is_alone = driver.handler_kind == "process"
        assert (row["output"] != str(worker.pid)) == is_alone, what
