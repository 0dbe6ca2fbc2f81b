"""Jobs that were fetched ahead, as long as handlers were quick, and stand behind slow ones."""

import asyncio
from typing import Any

from forge import Forge, JobContext
from tests.faults.kit.process import until
from tests.flow.engine.conftest import MakeApp, Work

QUICK = 300
SLOTS = 2


async def test_they_go_to_another_worker_and_are_not_fetched_again(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    release = asyncio.Event()
    first, second = (_app(make_app, release) for _ in range(2))
    worker = await work(first)
    await first.dispatch_many("maybe", ({"slow": False} for _ in range(QUICK)))
    await until(lambda: _completed(psql, QUICK), 30, "the quick ones are done")
    slow, quick = [{"slow": True}] * SLOTS, [{"slow": False}] * 5
    await first.dispatch_many("maybe", slow + quick)
    await until(lambda: len(worker.claimer.ahead), 10, "what follows was fetched ahead")
    await until(lambda: not worker.claimer.ahead, 10, "it waited too long")

    await work(second)
    await until(lambda: _completed(psql, QUICK + 5), 20, "it was done elsewhere")

    assert len(worker.runner.running) == SLOTS
    newest = "select lease, attempts from forge_jobs where status = 'completed' order by id desc"
    found = await psql.fetch(f"{newest} limit 5")
    assert {tuple(row) for row in found} == {(2, 1)}
    release.set()


def _app(make_app: MakeApp, release: asyncio.Event) -> Forge:
    app = make_app(max_concurrent=SLOTS, batch_size=10)

    @app.job
    async def maybe(ctx: JobContext, input: dict) -> None:
        if input["slow"]:
            await release.wait()

    return app


async def _completed(psql: Any, count: int) -> bool:
    done = "select count(*) from forge_jobs where status = 'completed'"
    return bool(await psql.fetchval(done) == count)
