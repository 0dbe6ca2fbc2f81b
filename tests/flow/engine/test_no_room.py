"""Slots that were free when a claim was sent and are taken when its answer comes."""

import asyncio

from forge import Forge, JobContext, Worker
from forge.core.job import Job
from forge.store import jobs
from forge.store.database import Database
from tests.flow.engine.conftest import MakeApp, Work
from tests.store.placing import claiming


async def test_what_finds_no_slot_free_waits_for_one(
    make_app: MakeApp, work: Work, database: Database
) -> None:
    """As where jobs came by message meanwhile, more than there were slots."""
    app, release = make_app(max_concurrent=2), asyncio.Event()

    @app.job
    async def hold(ctx: JobContext) -> None:
        await release.wait()

    worker = await work(app)
    worker.claimer.is_carried = lambda lane: True
    by_message, by_claim = await _claimed(app, worker, database, 3, 2)
    for job in by_message:
        worker.runner.start(job)

    worker.claimer._take(by_claim, start=True, is_late=False)

    assert set(worker.runner.running) == {job.id for job in by_message}
    assert worker.claimer.ahead.jobs == by_claim
    release.set()


async def _claimed(app: Forge, worker: Worker, database: Database, *counts: int) -> list[list[Job]]:
    for _ in range(sum(counts)):
        await app.dispatch("hold", {})
    (lane,) = await database.run(jobs.survey())
    return [
        await database.run(claiming([lane.lane], worker.registration, count)) for count in counts
    ]
