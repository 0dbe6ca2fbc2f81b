"""PostgreSQL is restarted and killed under load: each acknowledged job completes once."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from forge import Config, DatabaseUnavailable, Forge
from forge.core.errors import ForgeError
from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate
from forge.store.statement import Statement, name_of
from tests.faults.apps.handlers import gated
from tests.faults.apps.mixed import short
from tests.faults.kit.checker import check
from tests.faults.kit.history import History, Kind
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until, wait_until
from tests.faults.kit.server import running_server
from tests.faults.kit.worker_processes import Workers

RESTARTS = 4
CALLERS = 8


@pytest.fixture
def durable() -> Iterator[Cluster]:
    """A server for this module, with fsync."""
    with running_server() as server:
        yield server


@pytest.fixture
async def durable_workers(
    durable: Cluster, history: History, tmp_path: Path
) -> AsyncIterator[Workers]:
    database = Database(durable.url())
    await migrate(database)
    await database.close()
    with Workers(durable.url(), history, tmp_path) as workers:
        yield workers


async def test_no_job_is_lost_when_the_database_restarts_repeatedly(
    durable: Cluster, durable_workers: Workers, history: History
) -> None:
    """Fault 17: immediate restarts, without a checkpoint."""
    workers = [await durable_workers.start(dead_after="3s") for _ in range(2)]
    async with _dispatching(durable, history):
        for _ in range(RESTARTS):
            await _progress(history)
            await asyncio.to_thread(_restart, durable)

    await _check_all_done(durable, durable_workers, history)
    assert all(worker.is_alive for worker in workers)
    assert not any(worker.reported("rescued") for worker in workers)


async def test_no_job_is_lost_when_the_database_is_killed(
    durable: Cluster, durable_workers: Workers, history: History
) -> None:
    """Fault 18: SIGKILL of the postmaster."""
    workers = [await durable_workers.start(dead_after="3s") for _ in range(2)]
    async with _dispatching(durable, history):
        await _progress(history)
        await asyncio.to_thread(_kill, durable)
        await _progress(history)

    await _check_all_done(durable, durable_workers, history)
    assert all(worker.is_alive for worker in workers)


async def test_no_worker_is_declared_dead_after_an_outage(
    durable: Cluster, durable_workers: Workers, history: History, gate: Gate
) -> None:
    """Fault 17: after the outage all heartbeats are old, but all workers are alive."""
    async with Forge(Config(), database_url=durable.url()) as app:
        jobs = [await app.dispatch(gated, gate.input) for _ in range(3)]
    workers = [await durable_workers.start(dead_after="2s", max_concurrent=1) for _ in jobs]
    for job in jobs:
        await until_started(history, job.id)

    await asyncio.to_thread(durable.stop, "immediate")
    stopped_at = time.monotonic()
    await until(
        lambda: time.monotonic() > stopped_at + 4, 30, "the outage lasts longer than dead_after"
    )
    await asyncio.to_thread(durable.start)

    ledger = Ledger(await asyncpg.connect(durable.url()))
    for worker in workers:
        await ledger.until_beating(worker.id, 2)
    gate.open()
    for row in await ledger.until_final([job.id for job in jobs]):
        assert (row["status"], row["lease"], row["crashes"]) == ("completed", 1, 0)
    assert not any(worker.reported("rescued") for worker in workers)
    await ledger.connection.close()


class _dispatching:  # noqa: N801
    """Dispatches from several concurrent callers, and records which jobs were acknowledged.

    Callers with a key retry; those without a key share inserts, and do not retry, since their job
    may exist.
    """

    def __init__(self, server: Cluster, history: History) -> None:
        self._app = Forge(Config(), database_url=server.url())
        self._app.observers.append(self._observe)
        self._history = history
        self._stop = False
        self._largest = 0

    async def __aenter__(self) -> None:
        self._tasks = [
            asyncio.create_task(self._dispatch(caller, with_key=caller % 4 == 0))
            for caller in range(CALLERS)
        ]

    async def __aexit__(self, *_: object) -> None:
        self._stop = True
        await asyncio.gather(*self._tasks)
        await self._app.close()
        assert self._largest > 1, "no dispatches shared an insert"

    async def _dispatch(self, caller: int, *, with_key: bool) -> None:
        number = 0
        while not self._stop:
            number += 1
            options = {"idempotency_key": f"job {caller} {number}"} if with_key else {}
            try:
                job = await self._app.dispatch(short, {"seconds": 0.01}, **options)
            except DatabaseUnavailable:
                number -= with_key  # retry with the same key, so that it stays one job
                await asyncio.sleep(0.05)  # as a client that retries
                continue
            self._history.dispatched(job.id)
            await asyncio.sleep(0.02)  # as many as two workers run

    def _observe(self, statement: Statement[Any], _: float, error: ForgeError | None) -> None:
        ids = statement.args[0] if name_of(statement).startswith("jobs/dispatch") else None
        if error is None and isinstance(ids, list):
            self._largest = max(self._largest, len(ids))


def _restart(server: Cluster) -> None:
    server.stop("immediate")
    server.start()


def _kill(server: Cluster) -> None:
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: server.pid != pid, 30, "the server is dead")
    server.start()


async def _progress(history: History, count: int = 50) -> None:
    """Wait until this many more outcomes were accepted."""
    before = _accepted(history)
    await until(lambda: _accepted(history) >= before + count, 60, "jobs get done")


def _accepted(history: History) -> int:
    return sum(event.kind == Kind.ACCEPTED for event in history.events())


async def _check_all_done(server: Cluster, workers: Workers, history: History) -> None:
    ledger = Ledger(await asyncpg.connect(server.url()))
    waiting = "select count(*) from forge_jobs where status <> 'completed'"

    async def all_done() -> bool:
        return await ledger.connection.fetchval(waiting) == 0

    try:
        await until(all_done, 60, f"all jobs are done; output of the workers:\n{workers.log()}")
        doubles = "select count(idempotency_key) - count(distinct idempotency_key) from forge_jobs"
        assert await ledger.connection.fetchval(doubles) == 0
        verdict = check(history.events(), await ledger.rows(), workers.halts)
    finally:
        await ledger.connection.close()
    # A dispatch may be committed and its job completed before the client retries a lost answer.
    assert not verdict.faults.keys() - {"unexpected"}, f"{verdict}\n{workers.log()}"
