"""Rescue: races with completions, deleted worker rows, and jobs that cannot be rescued."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge import Forge
from forge.core.outcome import Completion, Settlement
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.jobs import LaneCursor
from forge.store.statement import Statement
from forge.store.workers import Registration, register
from tests.faults.apps.handlers import gated, quick
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger, until_started
from tests.faults.kit.process import until
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.worker_processes import Workers

BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


class Race:
    """A job that a dead worker has just finished, and two connections that race for it."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self.database = database
        self.ledger = ledger
        self.worker = Registration(uuid4(), uuid4(), "host", 1, "0", [], None, ["quick"], 1)
        self.job: UUID

    async def begin(self, app: Forge) -> None:
        await self.database.run(register(self.worker))
        self.job = (await app.dispatch(quick)).id
        assert await self.claim() == [1]

    async def claim(self) -> list[int]:
        (lane,) = await self.database.run(jobs.survey())
        place = LaneCursor(lane.lane, *BEGINNING)
        taken = await self.database.run(
            jobs.claim(
                [place],
                1,
                start=True,
                worker=self.worker.id,
                incarnation=self.worker.incarnation,
            )
        )
        return [job.lease for job in taken]

    @property
    def complete(self) -> Statement[list[UUID]]:
        return jobs.complete([Completion(self.job, 1, '"done"')])

    @property
    def fail(self) -> Statement[list[UUID]]:
        return jobs.settle([Settlement(self.job, 1, "running", "dead_letter", outcome="failed")])

    @property
    def rescue(self) -> Statement[Any]:
        return jobs.rescue([self.worker.id], None, dead_after=0, stale_after=0, limit=10)

    @asynccontextmanager
    async def held(self, statement: Statement[Any]) -> AsyncIterator[Any]:
        """Run a statement in a transaction that commits at the end of the block."""
        connection = await self.database.connect()
        try:
            async with connection.transaction():
                yield statement.read(await connection.fetch(statement.sql, *statement.args))
        finally:
            await connection.close()

    async def row(self) -> asyncpg.Record:
        return await self.ledger.job(self.job)


@pytest.fixture
async def race(app: Forge, database: Database, ledger: Ledger) -> Race:
    race = Race(database, ledger)
    await race.begin(app)
    return race


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_a_rescue_skips_a_job_that_is_being_completed(race: Race, end: str) -> None:
    """Fault 4: the completion is first."""
    async with race.held(getattr(race, end)) as accepted:
        rescued = await race.database.run(race.rescue)

    assert (accepted, rescued) == ([race.job], [])
    row = await race.row()
    assert row["status"] == {"complete": "completed", "fail": "dead_letter"}[end]
    assert row["crashes"] == 0
    assert await race.database.run(race.rescue) == []


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_an_ack_after_a_rescue_is_rejected(race: Race, end: str) -> None:
    """Fault 4: the rescue is first, and the ack waits for it."""
    async with race.held(race.rescue) as rescued:
        acking = asyncio.create_task(race.database.run(getattr(race, end)))
        await until(race.ledger.has_lock_waiter, 30, "the ack waits for the rescue")

    assert [row["id"] for row in rescued] == [race.job]
    assert await acking == []
    row = await race.row()
    assert (row["status"], row["attempts"], row["crashes"]) == ("retry", 0, 1)
    assert row["suspect"]
    assert row["output"] is None
    assert await race.ledger.connection.fetchval("select count(*) from forge_dead_letters") == 0


async def test_an_ack_after_a_rolled_back_rescue_is_accepted(race: Race) -> None:
    """Fault 4: the rescue is rolled back because the rescuer dies."""
    connection = await race.database.connect()
    transaction = connection.transaction()
    await transaction.start()
    await connection.fetch(race.rescue.sql, *race.rescue.args)
    acking = asyncio.create_task(race.database.run(race.complete))
    await until(race.ledger.has_lock_waiter, 30, "the ack waits for the rescue")

    connection.terminate()

    assert await acking == [race.job]
    assert (await race.row())["status"] == "completed"


async def test_an_ack_of_a_rescued_attempt_does_not_end_the_next_attempt(race: Race) -> None:
    """Fault 4: the job is rescued and claimed again before the ack arrives."""
    await race.database.run(race.rescue)
    assert await race.claim() == [2]

    accepted = await race.database.run(race.complete)

    assert accepted == []
    row = await race.row()
    assert (row["status"], row["lease"], row["attempts"]) == ("running", 2, 1)


async def test_two_rescuers_rescue_a_job_once(race: Race) -> None:
    """Fault 7: the second rescue runs before the first has committed."""
    async with race.held(race.rescue) as first:
        second = await race.database.run(race.rescue)

    assert (len(first), len(second)) == (1, 0)
    row = await race.row()
    assert (row["crashes"], row["attempts"]) == (1, 0)


async def test_a_live_worker_whose_row_is_deleted_keeps_its_jobs(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 6: the rescuer searches before the worker's next heartbeat restores its row."""
    job = await app.dispatch(gated, gate.input)
    worker = await workers.start(heartbeat_interval="2s", dead_after="4s")
    await until_started(history, job.id)
    rescuer = await workers.start(dead_after="4s", stale_threshold="1s", jobs=["quick"])
    await ledger.until_beating(rescuer.id, 25)

    await ledger.until_beating(worker.id, 1)
    await ledger.connection.execute("delete from forge_workers where id = $1", worker.id)
    await ledger.until_beating(worker.id, 1)
    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["attempts"], row["crashes"]) == (1, 1, 0)
    assert not rescuer.reported("rescued")
    after = await app.dispatch(gated, gate.input)
    await ledger.until_status(after.id, "completed")


async def test_a_live_worker_that_lost_its_heartbeat_connection_keeps_its_jobs(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate, proxy: Proxy
) -> None:
    """Fault 1, the opposite case: the connection dies silently and is replaced."""
    settings = {"heartbeat_interval": "500ms", "dead_after": "5s"}
    job = await app.dispatch(gated, gate.input)
    worker = await workers.start(url=proxy.url(), **settings)
    await until_started(history, job.id)
    rescuer = await workers.start(**settings, jobs=["quick"])
    await ledger.until_beating(rescuer.id, 12)

    assert proxy.silence(matching="pg_notify($14, '')") == 1
    await ledger.until_beating(worker.id, 2)
    await ledger.until_beating(rescuer.id, 2)
    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["crashes"]) == (1, 0)
    assert not rescuer.reported("rescued")
    assert worker.reported("notice", message="a heartbeat was sent again by another connection")


async def test_the_jobs_of_a_dead_worker_without_a_row_are_rescued(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 6."""
    job = await app.dispatch(gated, gate.input)
    first = await workers.start()
    await until_started(history, job.id)
    first.sigkill()
    await ledger.connection.execute("delete from forge_workers where id = $1", first.id)

    await workers.start()
    gate.open()

    row = await ledger.until_status(job.id, "completed")
    assert (row["lease"], row["attempts"], row["crashes"]) == (2, 1, 1)


async def test_a_job_that_cannot_be_rescued_does_not_block_others(
    app: Forge, workers: Workers, history: History, ledger: Ledger, gate: Gate
) -> None:
    """Fault 7."""
    held = [await app.dispatch(gated, gate.input) for _ in range(5)]
    wedged = held[2]
    await ledger.connection.execute(_wedge(wedged.id))
    first = await workers.start()
    for job in held:
        await until_started(history, job.id)
    first.sigkill()
    gate.open()

    rescuer = await workers.start()

    others = [job.id for job in held if job is not wedged]
    assert {row["status"] for row in await ledger.until_final(others)} == {"completed"}
    assert (await ledger.job(wedged.id))["status"] == "running"
    assert rescuer.reported("notice", message="a rescue failed; its jobs are rescued one by one")
    await ledger.connection.execute("drop trigger wedged on forge_jobs")
    await ledger.until_status(wedged.id, "completed")


async def test_a_rescuer_that_dies_leaves_its_jobs_to_the_next(
    app: Forge,
    workers: Workers,
    history: History,
    ledger: Ledger,
    gate: Gate,
    database_url: str,
) -> None:
    """Fault 7: it is killed while its rescue waits for a lock; nothing of it remains."""
    held = [await app.dispatch(gated, gate.input) for _ in range(5)]
    first = await workers.start()
    for job in held:
        await until_started(history, job.id)
    locker = await asyncpg.connect(database_url)
    rescuer = await workers.start()
    # The rescue records what it rescues, and waits for this lock while it holds its rows.
    hold = locker.transaction()
    await hold.start()
    await locker.execute("lock table forge_attempts in exclusive mode")
    first.sigkill()
    await until(ledger.has_lock_waiter, 30, "the rescue has begun and waits")

    rescuer.sigkill()
    await ledger.connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and wait_event_type = 'Lock'"
    )
    await hold.rollback()
    await locker.close()
    gate.open()
    await workers.start()

    rows = await ledger.until_final([job.id for job in held])
    assert {(row["status"], row["attempts"], row["crashes"]) for row in rows} == {
        ("completed", 1, 1)
    }


def _wedge(job_id: UUID) -> str:
    return f"""
        create function wedged() returns trigger language plpgsql as
        $$begin raise exception 'this one stays where it is'; end$$;
        create trigger wedged before update on forge_jobs for each row
        when (new.id = '{job_id}' and new.status = 'retry') execute function wedged()
    """
