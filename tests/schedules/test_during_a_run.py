"""What is asked of a schedule while it runs."""

import asyncio
from datetime import timedelta

import pytest

from forge import Forge, ScheduleContext
from tests.apps import Work
from tests.schedules.conftest import Until

HOUR = timedelta(hours=1)


class Slow:
    """A run that ends when its gate opens."""

    def __init__(self) -> None:
        self.began, self.may_end = asyncio.Event(), asyncio.Event()

    async def run(self, ctx: ScheduleContext) -> None:
        self.began.set()
        await self.may_end.wait()


@pytest.mark.parametrize("again", ["ensure", "enable"])
@pytest.mark.parametrize("missed", ["once", "skip", "all"])
async def test_disabling_and_enabling_during_a_run_brings_no_second_one(
    app: Forge, work: Work, becomes: Until, again: str, missed: str
) -> None:
    slow = Slow()
    app.schedule("slow", every="1h", missed=missed)(slow.run)
    made = await app.schedules.ensure("slow")
    await work(app)
    await slow.began.wait()

    await app.schedules.disable("slow")
    await getattr(app.schedules, again)("slow")
    slow.may_end.set()

    row = await becomes("slow", lambda row: row.last_run_at)
    assert (row.lease, row.enabled) == (1, True)
    assert row.next_run_at == made.next_run_at + HOUR
