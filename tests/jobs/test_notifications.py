"""A worker batches its notifications instead of sending one per job."""

import asyncio
from typing import Any

from forge import Forge, JobContext
from forge.store.notify import CHANGES
from forge.worker.job_reports import INTERVAL
from tests.apps import Work
from tests.faults.kit.process import until

JOBS = 300


async def test_many_jobs_that_end_together_cause_few_notifications(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job
    async def report(ctx: JobContext) -> None:
        ctx.progress(50, "half")

    received: list[str] = []
    await psql.add_listener(CHANGES, lambda *message: received.append(message[-1]))
    await app.dispatch_many("report", ({} for _ in range(JOBS)))
    clock = asyncio.get_running_loop().time
    began = clock()

    await work(app)
    await until(lambda: _all_ran(psql), 30, "all have run")
    # The last notification follows the commit.
    await until(lambda: received, 10, "a notification has arrived")
    took = clock() - began

    assert len(received) <= took / INTERVAL + 2
    assert len(received) < JOBS


async def _all_ran(psql: Any) -> bool:
    ran = await psql.fetchval("select count(*) from forge_jobs where status = 'completed'")
    return bool(ran == JOBS)
