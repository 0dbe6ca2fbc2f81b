"""A job fetched ahead runs before its start is written, and is its attempt's all the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge import Forge, JobContext, StaleAttempt
from forge.core.job import Job
from forge.store import jobs, workers
from forge.store.database import Database
from forge.store.jobs import Note, Place
from forge.store.workers import Registration
from tests.faults.apps.handlers import quick
from tests.faults.kit.ledger import Ledger

BEGINNING = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


class Around:
    """What a context needs in order to reach the database."""

    output_limit = 1_000_000

    def __init__(self, pool: asyncpg.Pool[Any]) -> None:
        self.pool = pool

    def completed(self, context: JobContext) -> None: ...


@pytest.fixture
async def ahead(app: Forge, database: Database) -> Job:
    """A job that a worker has claimed, and whose start it has not written yet."""
    worker = Registration(uuid4(), uuid4(), "host", 1, "0", [], None, ["quick"], 1)
    await database.run(workers.register(worker))
    await app.dispatch(quick)
    (lane,) = await database.run(jobs.survey())
    place = Place(lane.lane, *BEGINNING)
    claim = jobs.claim([place], 1, start=False, worker=worker.id, incarnation=worker.incarnation)
    (job,) = await database.run(claim)
    return job


async def test_its_progress_is_not_taken_for_that_of_a_stale_attempt(
    ahead: Job, database: Database, ledger: Ledger
) -> None:
    """Fault 3, the other way round: a living attempt is not stopped for being early."""
    accepted = await database.run(jobs.note([Note(ahead.id, ahead.lease, 50, "half", None)]))
    late = await database.run(jobs.note([Note(ahead.id, ahead.lease - 1, 90, "old", None)]))

    assert (accepted, late) == ([ahead.id], [])
    row = await ledger.job(ahead.id)
    assert (row["status"], row["progress_percent"]) == ("claimed", 50)


async def test_it_may_complete_in_its_own_transaction(
    ahead: Job, database: Database, ledger: Ledger
) -> None:
    """Fault 3, the other way round."""
    context = JobContext(ahead, Around(await database.users()))  # type: ignore[arg-type]

    async with context.complete_in_transaction({"answer": 42}):
        pass

    row = await ledger.job(ahead.id)
    assert (row["status"], row["output"]) == ("completed", '{"answer": 42}')
    assert row["started_at"] is not None


async def test_once_cancelled_it_may_not(ahead: Job, database: Database, ledger: Ledger) -> None:
    """Fault 39."""
    await database.run(jobs.cancel([ahead.id], None, None))
    context = JobContext(ahead, Around(await database.users()))  # type: ignore[arg-type]

    with pytest.raises(StaleAttempt):
        async with context.complete_in_transaction():
            pass

    assert (await ledger.job(ahead.id))["status"] == "cancelled"
