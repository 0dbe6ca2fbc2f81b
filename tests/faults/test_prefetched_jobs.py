"""A prefetched job runs before its start is written; its attempt still owns it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge import Forge, JobContext, StaleAttempt
from forge.core.job import Job
from forge.store import jobs, workers
from forge.store.connection.database import Database
from forge.store.jobs import AttemptUpdate, LaneCursor
from forge.store.workers import Registration
from tests.faults.apps.handlers import quick
from tests.faults.kit.ledger import Ledger

BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


class FakeRunner:
    """The part of a worker that a context needs to reach the database."""

    output_limit = 1_000_000

    def __init__(self, pool: asyncpg.Pool[Any]) -> None:
        self.pool = pool

    def completed(self, context: JobContext) -> None: ...


@pytest.fixture
async def ahead(app: Forge, database: Database) -> Job:
    """A job that a worker has claimed but not yet marked as started."""
    worker = Registration(uuid4(), uuid4(), "host", 1, "0", [], None, ["quick"], 1)
    await database.run(workers.register(worker))
    await app.dispatch(quick)
    (lane,) = await database.run(jobs.survey())
    place = LaneCursor(lane.lane, *BEGINNING)
    claim = jobs.claim([place], 1, start=False, worker=worker.id, incarnation=worker.incarnation)
    (job,) = await database.run(claim)
    return job


async def test_progress_of_a_prefetched_job_is_not_stale(
    ahead: Job, database: Database, ledger: Ledger
) -> None:
    """Fault 3, the opposite case: a current attempt is not stopped."""
    accepted = await database.run(
        jobs.note([AttemptUpdate(ahead.id, ahead.lease, 50, "half", None)])
    )
    late = await database.run(
        jobs.note([AttemptUpdate(ahead.id, ahead.lease - 1, 90, "old", None)])
    )

    assert (accepted, late) == ([ahead.id], [])
    row = await ledger.job(ahead.id)
    assert (row["status"], row["progress_percent"]) == ("claimed", 50)


async def test_a_prefetched_job_can_complete_in_its_own_transaction(
    ahead: Job, database: Database, ledger: Ledger
) -> None:
    """Fault 3, the opposite case: the write of a current attempt is accepted."""
    context = JobContext(ahead, FakeRunner(await database.users()))  # type: ignore[arg-type]

    async with context.complete_in_transaction({"answer": 42}):
        pass

    row = await ledger.job(ahead.id)
    assert (row["status"], row["output"]) == ("completed", '{"answer": 42}')
    assert row["started_at"] is not None


async def test_a_cancelled_prefetched_job_cannot_complete(
    ahead: Job, database: Database, ledger: Ledger
) -> None:
    """Fault 39."""
    await database.run(jobs.cancel([ahead.id], None, None))
    context = JobContext(ahead, FakeRunner(await database.users()))  # type: ignore[arg-type]

    with pytest.raises(StaleAttempt):
        async with context.complete_in_transaction():
            pass

    assert (await ledger.job(ahead.id))["status"] == "cancelled"
