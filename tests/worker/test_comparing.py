"""Comparing what a worker holds with what the database says, where no word of a change arrived."""

import asyncio
from typing import Any

import pytest

from forge import Forge, JobContext
from forge.worker.reconcile import Reconciler
from tests.apps import Work
from tests.faults.kit.process import until


async def test_a_job_that_was_taken_away_without_a_word_is_let_go_when_that_is_seen_twice(
    app: Forge, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reconciler, "interval", 3600.0)
    stopped = asyncio.Event()

    @app.job
    async def hang(ctx: JobContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    worker = await work(app)
    handle = await hang.dispatch()
    await until(lambda: worker.runner.running, 10, "it runs")
    (attempt,) = worker.runner.running.values()
    await until(lambda: _is_running(handle), 10, "the database knows")

    await psql.execute("update forge_jobs set status = 'cancelled'")
    await worker.reconciler.reconcile()
    assert attempt.stop is None
    await worker.reconciler.reconcile()

    await asyncio.wait_for(stopped.wait(), 10)
    assert attempt.context.cancelled


async def _is_running(handle: Any) -> bool:
    return bool((await handle.get()).status == "running")
