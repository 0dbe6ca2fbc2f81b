"""Any login can send notifications: they are hints that are always verified."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from forge import Config, Forge, JobContext, Worker
from forge.core.workers.wakeups import EVERYONE
from forge.store.connection.database import Database
from forge.store.notify import CHANGES, WAKE, attempt_payload, worker_channel
from forge.store.statement import name_of
from tests.apps import FAST, working
from tests.faults.kit.process import until
from tests.security.logins import STRANGER

GARBAGE = [
    "x",
    "a b",
    "a b c",
    "00000000000000000000000000000000",
    "00000000000000000000000000000000 x",
    "00000000000000000000000000000000 99999999999999999999999999",
    f"00000000000000000000000000000000 {'9' * 5000}",
    f"{'9' * 5000} 1",
    f"1 {'9' * 5000}",
    "1 99999999999999999999999999",
    "\u0661 \u0662",
    "\u00b2 \u00b2",
    "-1 -1",
    "{}",
    " ",
    "\u202e\t\n",
]

pytestmark = pytest.mark.parametrize("attacker", [STRANGER], indirect=True)


@pytest.fixture
async def app(granted: Database) -> AsyncIterator[Forge]:
    app = Forge(Config(worker=FAST | {"max_concurrent": 50}), database_url=granted.url)
    yield app
    await app.close()


@pytest.fixture
async def unhandled() -> list[dict[str, Any]]:
    """What reached the loop's exception handler."""
    found: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context))
    return found


async def test_a_spoofed_notification_stops_no_handler(app: Forge, attacker: Any) -> None:
    """Fault 57: a role without any grant names a running job and its lease."""
    may_end = asyncio.Event()

    @app.job(max_attempts=1)
    async def wait(ctx: JobContext) -> str:
        await may_end.wait()
        return "done"

    async with working(app) as worker:
        handle = await wait.dispatch()
        await until(lambda: len(worker.runner.running) == 1, 10, "it runs")
        reads = _count_reads(worker)
        await _notify(
            attacker, worker_channel(worker.registration.id), attempt_payload(handle.id, 1)
        )
        await until(lambda: reads, 10, "the row was read")
        may_end.set()

        assert await handle.result(10) == "done"
        assert (await handle.get()).lease == 1


async def test_many_spoofed_notifications_cost_a_few_reads(app: Forge, attacker: Any) -> None:
    may_end = asyncio.Event()

    @app.job(max_attempts=1)
    async def wait(ctx: JobContext) -> None:
        await may_end.wait()

    async with working(app) as worker:
        handles = [await wait.dispatch() for _ in range(40)]
        await until(lambda: len(worker.runner.running) == 40, 20, "all run")
        reads, channel = _count_reads(worker), worker_channel(worker.registration.id)
        async with attacker.transaction():
            for handle in handles:
                for space in range(1, 26):  # the same notification would be sent once
                    payload = attempt_payload(handle.id, 1).replace(" ", " " * space)
                    await _notify(attacker, channel, payload)
        await _notify(attacker, channel, attempt_payload(handles[0].id, 1))
        await until(lambda: reads and not worker.recheck._doubtful, 10, "the rows were read")
        may_end.set()
        for handle in handles:
            await handle.result(20)

    assert len(reads) <= 5


async def test_a_notification_confirmed_by_the_row_stops_the_handler_at_once(
    app: Forge, attacker: Any, psql: Any
) -> None:
    stopped = asyncio.Event()

    @app.job(max_attempts=1)
    async def wait(ctx: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with working(app) as worker:
        handle = await wait.dispatch()
        await until(lambda: len(worker.runner.running) == 1, 10, "it runs")
        reads = _count_reads(worker)
        await psql.execute("update forge_jobs set status = 'cancelled' where id = $1", handle.id)
        await _notify(
            attacker, worker_channel(worker.registration.id), attempt_payload(handle.id, 1)
        )

        await asyncio.wait_for(stopped.wait(), 10)
    assert reads


async def test_garbage_on_every_channel_is_ignored(
    app: Forge, attacker: Any, unhandled: list[dict[str, Any]]
) -> None:
    """Fault 57: no traceback, and who listens hears on."""

    @app.job
    async def quick(ctx: JobContext) -> str:
        return "done"

    async with working(app) as worker:
        assert await (await quick.dispatch()).result(10) == "done"  # the app listens for changes
        own = worker_channel(worker.registration.id)
        for channel in (own, WAKE, CHANGES):
            for payload in GARBAGE:
                await _notify(attacker, channel, payload)
        await _notify(attacker, WAKE, EVERYONE)

        assert await (await quick.dispatch()).result(10) == "done"
        assert worker.transport.is_listening()
    assert unhandled == []


async def test_a_row_that_its_worker_does_not_know_is_given_back_within_seconds(
    app: Forge, attacker: Any, psql: Any
) -> None:
    """Its worker is idle and lost no answer, and looks all the same."""

    @app.job(max_attempts=1)
    async def quick(ctx: JobContext) -> str:
        return "done"

    async with working(app) as worker:
        handle = await quick.dispatch(delay="1h")
        await until(lambda: _has_looked(worker), 20, "the worker has looked around")
        await _own(psql, handle.id, worker.registration.id)

        await until(lambda: _is_pending(handle), 20, "it is given back")


async def _notify(conn: Any, channel: str, payload: str) -> None:
    await conn.execute("select pg_notify($1, $2)", channel, payload)


async def _spoof(conn: Any, worker: Worker, job_id: UUID) -> None:
    channel = worker_channel(worker.registration.id)
    await _notify(conn, channel, attempt_payload(job_id, 1))


def _count_reads(worker: Worker) -> list[str]:
    reads: list[str] = []

    def observe(statement: Any, seconds: float, error: Any) -> None:
        if name_of(statement) == "jobs/taken":
            reads.append("jobs/taken")

    worker._side._observers.append(observe)
    return reads


def _has_looked(worker: Worker) -> bool:
    return worker.reconciler._looked_at > 0


async def _own(psql: Any, job_id: UUID, worker_id: UUID) -> None:
    await psql.execute(
        "update forge_jobs set status = 'running', lease = lease + 1, attempts = attempts + 1, "
        "worker_id = $2, started_at = now(), claimed_at = now() where id = $1",
        job_id,
        worker_id,
    )


async def _is_pending(handle: Any) -> bool:
    return bool((await handle.get()).status == "pending")
