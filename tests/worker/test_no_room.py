"""Slots that were free when a claim was sent and are taken when its answer comes."""

import asyncio

import pytest

from forge import Forge, JobContext, Worker
from forge.core.job import Job
from forge.store import jobs
from forge.store.connection.database import Database
from tests.apps import MakeApp, Work
from tests.store.placing import claiming


async def test_what_finds_no_slot_free_waits_for_one(
    make_app: MakeApp, work: Work, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where jobs came by message meanwhile, more than there were slots."""
    app, release = make_app(max_concurrent=2), asyncio.Event()

    @app.job
    async def hold(ctx: JobContext) -> None:
        await release.wait()

    worker = await work(app)
    monkeypatch.setattr(worker.transport, "carries", lambda lane: True)
    by_message, by_claim = await _claimed(app, worker, database, 3, 2)
    for job in by_message:
        worker.runner.start(job, worker.jobs)

    worker.claimer._take(by_claim, worker.jobs, start=True, is_late=False)

    assert set(worker.runner.running) == {(job.id, job.lease) for job in by_message}
    assert [waiting.job for waiting in worker.held.ahead] == by_claim
    release.set()


async def test_what_was_fetched_ahead_and_finds_slots_free_takes_them(
    make_app: MakeApp, work: Work, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the last attempts ended while the claim was on its way: no slot comes free then."""
    app, release = make_app(max_concurrent=2), asyncio.Event()

    @app.job
    async def hold(ctx: JobContext) -> None:
        await release.wait()

    worker = await work(app)
    monkeypatch.setattr(worker.transport, "carries", lambda lane: True)
    (ahead,) = await _claimed(app, worker, database, 3, start=False)

    worker.claimer._take(ahead, worker.jobs, start=False, is_late=False)

    assert set(worker.runner.running) == {(job.id, job.lease) for job in ahead[:2]}
    assert [waiting.job for waiting in worker.held.ahead] == ahead[2:]
    release.set()
    for job in ahead:
        await app.handle(job.id).result(10)


async def _claimed(
    app: Forge, worker: Worker, database: Database, *counts: int, start: bool = True
) -> list[list[Job]]:
    for _ in range(sum(counts)):
        await app.dispatch("hold", {})
    (lane,) = await database.run(jobs.survey())
    return [
        await database.run(claiming([lane.lane], worker.registration, count, start=start))
        for count in counts
    ]
