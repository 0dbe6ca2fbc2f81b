"""A worker that is cut off stops its handlers before other workers can claim their jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from forge import Config, Forge
from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from tests.faults.apps.handlers import gated, gated_in_process, gated_in_thread, stuck_in_thread
from tests.faults.kit.checker import check
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, events_of, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Mode, Proxy
from tests.faults.kit.server import running_server
from tests.faults.kit.worker_processes import Workers

# Slow enough that a busy machine can start a child process in time.
PACE = {"dead_after": "3s", "heartbeat_interval": "500ms"}
STOPPING = (
    "the database is silent; handlers are asked to stop before another worker takes their jobs"
)


async def test_a_worker_cut_off_stops_its_handlers_before_their_jobs_run_elsewhere(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate, proxy: Proxy
) -> None:
    """Fault 55: on the event loop, in a thread, in a child process; no attempts overlap."""
    cut_off = await workers.start(url=proxy.url(), **PACE)
    ids = [
        (await app.dispatch(handler, gate.input)).id
        for handler in (gated, gated_in_thread, gated_in_process)
    ]
    for id in ids:
        history.dispatched(id)
        await until_started(history, id)
    await workers.start(**PACE)

    proxy.mode = Mode.DROP
    await cut_off.until_reported("notice", message=STOPPING)
    for id in ids:
        await until_started(history, id, lease=2)
    gate.open()
    rows = await ledger.until_final(ids)
    proxy.mode = Mode.PASS

    assert [(row["status"], row["attempts"]) for row in rows] == [("completed", 1)] * 3
    verdict = check(history.events(), await ledger.rows(), workers.halts)
    assert verdict.overlapping == ()
    assert verdict.lost == ()


async def test_a_lock_on_the_jobs_table_does_not_stop_heartbeats(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate, database_url: str
) -> None:
    """Fault 25: heartbeats use no table that a migration locks for long."""
    await workers.start(**PACE)
    id = (await app.dispatch(gated, gate.input)).id
    await until_started(history, id)
    held = await asyncpg.connect(database_url)
    has_beaten = "select last_heartbeat > $1::timestamptz + interval '4 s' from forge_workers"

    async with held.transaction():
        since = await held.fetchval("select now()")
        await held.execute("lock table forge_jobs, forge_schedules in access exclusive mode")
        await until(lambda: held.fetchval(has_beaten, since), 20, "its heartbeats continued")
    await held.close()
    gate.open()
    (row,) = await ledger.until_final([id])

    assert (row["status"], row["lease"], row["crashes"]) == ("completed", 1, 0)


async def test_stopped_attempts_are_released_when_the_network_recovers(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate, proxy: Proxy
) -> None:
    """No other worker is running: the attempt is released, and the job runs again."""
    worker = await workers.start(url=proxy.url(), **PACE)
    job = await app.dispatch(gated, gate.input)
    await until_started(history, job.id)

    proxy.mode = Mode.DROP
    await until(lambda: events_of(history, job.id, Kind.FINISHED), 30, "its handler has stopped")
    proxy.silence()
    proxy.mode = Mode.PASS
    gate.open()
    row = await ledger.until_status(job.id, "completed", timeout=60)

    assert (row["lease"], row["attempts"], row["crashes"], row["suspect"]) == (2, 1, 1, False)
    assert [each["outcome"] for each in await ledger.attempts(job.id)] == ["released"]
    assert worker.is_alive


async def test_a_handler_that_cannot_be_stopped_is_reported(
    app: Forge, workers: Workers, history: History, proxy: Proxy
) -> None:
    worker = await workers.start(url=proxy.url(), jobs=["stuck_in_thread"], **PACE)
    job = await app.dispatch(stuck_in_thread)
    await until_started(history, job.id)

    proxy.mode = Mode.DROP

    stuck = await worker.until_reported("notice", level="error")
    assert "did not stop" in stuck["message"]
    assert stuck["detail"]["running"] == ["stuck_in_thread"]


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[Cluster]:
    with running_server(fsync="off") as server:
        database = Database(server.url())
        await migrate(database)
        await database.close()
        yield server


async def test_a_database_that_is_down_stops_no_handler(
    own: Cluster, history: History, gate: Gate, tmp_path: Path
) -> None:
    """Fault 55: it refuses connections for longer than `dead_after`; no worker is declared dead."""
    with Workers(own.url(), history, tmp_path) as workers:
        async with Forge(Config(), database_url=own.url()) as app:
            job = await app.dispatch(gated, gate.input)
        worker = await workers.start(dead_after="1s")
        await workers.start(dead_after="1s")
        await until_started(history, job.id)

        await asyncio.to_thread(own.stop, "fast")
        lost = "a heartbeat was lost"
        await until(
            lambda: len(worker.reported("notice", message=lost)) > 6,
            30,
            "it has missed several heartbeats",
        )
        await asyncio.to_thread(own.start)
        gate.open()

        row = await _completed(own, job.id)
        assert (row["lease"], row["attempts"], row["crashes"]) == (1, 1, 0)
        assert not worker.reported("notice", message=STOPPING)


async def _completed(server: Cluster, job_id: Any) -> Any:
    connection = await asyncpg.connect(server.url())
    try:
        return await Ledger(connection).until_status(job_id, "completed")
    finally:
        await connection.close()
