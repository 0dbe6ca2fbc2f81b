"""Runs that go on after they have completed in a transaction of their own."""

import asyncio
from datetime import timedelta

from forge import Forge, ScheduleContext
from tests.apps import Work
from tests.faults.kit.process import until
from tests.schedules.conftest import Until

RUNS = 3


async def test_the_next_run_waits_until_the_handler_of_the_last_has_returned(
    app: Forge, work: Work, becomes: Until
) -> None:
    alive: set[int] = set()
    most: list[int] = []
    may_return = asyncio.Event()

    @app.schedule("linger")
    async def linger(ctx: ScheduleContext) -> None:
        alive.add(ctx.lease)
        most.append(len(alive))
        again = timedelta(0) if ctx.lease < RUNS else timedelta(hours=1)
        async with ctx.complete_in_transaction(again):
            pass
        await may_return.wait()
        alive.discard(ctx.lease)

    await app.schedules.ensure("linger")
    await work(app)
    await becomes("linger", lambda row: row.lease == 2)
    may_return.set()

    await becomes("linger", lambda row: row.lease == RUNS)
    await until(lambda: len(most) == RUNS, 10, "all of them have run")
    assert most == [1] * RUNS
