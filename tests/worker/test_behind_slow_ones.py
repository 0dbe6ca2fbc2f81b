"""Jobs that were fetched ahead, as long as handlers were quick, and stand behind slow ones."""

import asyncio
from typing import Any

import pytest

from forge import Forge, JobContext
from forge.worker import claimer
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until

QUICK = 5
SLOTS = 2


async def test_they_go_to_another_worker_and_are_not_fetched_again(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    release = asyncio.Event()
    first, second = (_app(make_app, release) for _ in range(2))
    worker = await work(first)
    worker.held.mean_seconds = 0.0  # as after many quick ones
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


async def test_they_are_given_back_at_once_when_their_worker_is_told_to_stop(
    make_app: MakeApp, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claimer, "LONGEST_WAIT", 1000.0)  # nothing else would give them back
    release = asyncio.Event()
    app = _app(make_app, release)
    worker = await work(app)
    worker.held.mean_seconds = 0.0  # as after many quick ones
    await app.dispatch_many("maybe", [{"slow": True}] * SLOTS + [{"slow": False}] * QUICK)
    await until(lambda: len(worker.held.ahead) == QUICK, 20, "they were fetched ahead")

    worker.drain()

    given_back = "status = 'pending' and lease = 1 and attempts = 0"
    await until(lambda: _is(psql, given_back), 20, "they are given back")
    assert len(worker.runner.running) == SLOTS
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
