"""A worker announces what changed in a moment together, not job by job."""

import asyncio
from typing import Any

from forge import Forge, JobContext
from forge.store.notify import CHANGES
from forge.worker.tell import INTERVAL
from tests.faults.kit.process import until
from tests.flow.engine.conftest import Work

JOBS = 300


async def test_many_jobs_that_end_together_are_few_notifications(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job
    async def report(ctx: JobContext) -> None:
        ctx.progress(50, "half")

    heard: list[str] = []
    await psql.add_listener(CHANGES, lambda *message: heard.append(message[-1]))
    await app.dispatch_many("report", ({} for _ in range(JOBS)))
    clock = asyncio.get_running_loop().time
    began = clock()

    await work(app)
    await until(lambda: _all_ran(psql), 30, "all have run")
    took = clock() - began

    assert 0 < len(heard) <= took / INTERVAL + 2
    assert len(heard) < JOBS


async def _all_ran(psql: Any) -> bool:
    ran = await psql.fetchval("select count(*) from forge_jobs where status = 'completed'")
    return bool(ran == JOBS)
