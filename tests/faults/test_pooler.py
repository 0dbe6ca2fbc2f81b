"""Behind a transaction pooler: no notifications and no session state; polling suffices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from forge import Config, Forge
from forge.store.connection.database import Database
from forge.store.migrate import index_waiting, migrate
from tests.faults.apps.handlers import (
    beating,
    beating_in_process,
    failing,
    gated,
    gated_in_process,
    gated_in_thread,
    once_in_transaction,
    quick,
)
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.pooler import PGBOUNCER, pgbouncer
from tests.faults.kit.process import until
from tests.faults.kit.server import running_server
from tests.faults.kit.worker_processes import Workers

pytestmark = pytest.mark.skipif(
    PGBOUNCER is None, reason="pgbouncer is not installed: apt-get install pgbouncer"
)


@pytest.fixture(scope="module")
def direct_url() -> Iterator[str]:
    with running_server(fsync="off") as server:
        yield server.url(tcp=True)


@pytest.fixture(scope="module")
def pooled_url(direct_url: str) -> Iterator[str]:
    with pgbouncer(direct_url) as url:
        yield url


@pytest.fixture
async def ledger(direct_url: str) -> AsyncIterator[Ledger]:
    database = Database(direct_url)
    await migrate(database)
    await database.close()
    connection = await asyncpg.connect(direct_url)
    yield Ledger(connection)
    await connection.execute("truncate forge_jobs, forge_attempts, forge_workers")
    await connection.close()


@pytest.fixture
async def app(pooled_url: str, ledger: Ledger) -> AsyncIterator[Forge]:
    async with Forge(Config(database={"pooler": True}), database_url=pooled_url) as app:
        yield app


@pytest.fixture
async def workers(pooled_url: str, history: History, tmp_path: Path) -> AsyncIterator[Workers]:
    with Workers(pooled_url, history, tmp_path) as workers:
        yield workers


async def test_jobs_of_every_execution_mode_complete(
    app: Forge, workers: Workers, ledger: Ledger, gate: Gate
) -> None:
    """Fault 16: single dispatches, dispatches with a key, and COPY."""
    await ledger.connection.execute("create table effects (what text)")
    worker = await workers.start(pooler=True)
    gate.open()
    definitions = (gated, gated_in_thread, gated_in_process, beating, beating_in_process)
    alone = [await app.dispatch(each, gate.input) for each in (*definitions, once_in_transaction)]
    first = await app.dispatch(quick, idempotency_key="once")
    second = await app.dispatch(quick, idempotency_key="once")
    many = await app.dispatch_many(quick, ({"number": number} for number in range(500)))

    assert (first.id, second.deduplicated, many) == (second.id, True, 500)
    assert await first.result(timeout=30) == "done"
    rows = await ledger.until_final([job.id for job in alone])
    assert [row["last_error"] for row in rows if row["status"] != "completed"] == []
    left = "select count(*) from forge_jobs where status <> 'completed'"
    await _until_none(ledger, left)
    assert await ledger.connection.fetchval("select what from effects") == "lease 1"
    await _check_that_a_pause_is_seen(app, gate)
    worker.sigterm()
    assert await worker.ended() == 0
    assert not worker.reported("notice", level="error")


async def test_failures_cancellations_and_rescues_work(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 16: without notifications."""
    fails = await app.dispatch(failing)
    unwanted = await app.dispatch(gated, gate.input)
    orphan = await app.dispatch(gated, gate.input)
    first = await workers.start(pooler=True)
    for job in (unwanted, orphan):
        await until_started(history, job.id)

    await unwanted.cancel("no longer needed")
    await ledger.until_status(unwanted.id, "cancelled")
    first.sigkill()
    await workers.start(pooler=True)
    await until_started(history, orphan.id, lease=2)
    gate.open()

    row = await ledger.until_status(orphan.id, "completed")
    assert (row["lease"], row["crashes"]) == (2, 1)
    row = await ledger.until_status(fails.id, "dead_letter")
    assert row["attempts"] == 2
    assert (await ledger.job(unwanted.id))["status"] == "cancelled"


async def _until_none(ledger: Ledger, count: str) -> None:
    async def none_left() -> bool:
        return await ledger.connection.fetchval(count) == 0

    await until(none_left, 60, "nothing is left")


async def test_an_index_is_built_through_a_pooler(app: Forge, ledger: Ledger) -> None:
    database = await (await app.session()).database()

    assert await index_waiting(database) is not None

    assert await index_waiting(database) is None


async def _check_that_a_pause_is_seen(app: Forge, gate: Gate) -> None:
    await app.pause("quick", reason="a test")
    held = await app.dispatch(quick)
    await (await app.dispatch(gated, gate.input)).result(timeout=30)
    assert (await held.get()).status == "pending"
    await app.resume("quick")
    assert await held.result(timeout=30) == "done"
