"""Jobs that were fetched ahead, as long as handlers were quick, and stand behind slow ones."""

import asyncio
from typing import Any

from forge import Forge, JobContext
from tests.faults.kit.process import until
from tests.flow.engine.conftest import MakeApp, Work

QUICK = 5
SLOTS = 2


async def test_they_go_to_another_worker_and_are_not_fetched_again(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    release = asyncio.Event()
    first, second = (_app(make_app, release) for _ in range(2))
    worker = await work(first)
    worker.runner.mean_seconds = 0.0  # as after many quick ones
    slow, quick = [{"slow": True}] * SLOTS, [{"slow": False}] * QUICK
    await first.dispatch_many("maybe", slow + quick)
    given_back = "status = 'pending' and lease = 1"
    await until(lambda: _is(psql, given_back), 20, "what was fetched ahead waited too long")

    await work(second)
    await until(lambda: _is(psql, "status = 'completed'"), 20, "it was done elsewhere")

    assert len(worker.runner.running) == SLOTS
    done = "select lease, attempts from forge_jobs where status = 'completed'"
    assert {tuple(row) for row in await psql.fetch(done)} == {(2, 1)}
    release.set()


def _app(make_app: MakeApp, release: asyncio.Event) -> Forge:
    app = make_app(max_concurrent=SLOTS, batch_size=10)

    @app.job
    async def maybe(ctx: JobContext, input: dict) -> None:
        if input["slow"]:
            await release.wait()

    return app


async def _is(psql: Any, condition: str) -> bool:
    found = await psql.fetchval(f"select count(*) from forge_jobs where {condition}")
    return bool(found == QUICK)
