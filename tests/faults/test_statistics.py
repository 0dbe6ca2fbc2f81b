"""Statistics equal the rows' history, except for the last seconds of killed workers."""

from __future__ import annotations

import asyncio

from forge import Forge
from tests.faults.apps.mixed import flaky, short
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.process import until
from tests.faults.kit.statistics_checker import compare
from tests.faults.kit.worker_processes import Workers

# Instead of ten seconds, so that a killed worker has written some of its counts.
INTERVAL = 0.4
WRITTEN = (
    "select coalesce(sum(completed + retried), 0)::int from forge_statistics where writer = $1"
)


async def test_statistics_equal_the_history_after_workers_were_killed(
    app: Forge, workers: Workers, ledger: Ledger
) -> None:
    pace = {"max_concurrent": 4, "statistics_interval": INTERVAL}
    for definition in (short, flaky):
        inputs = ({"seconds": 0.01} for _ in range(250))
        await app.dispatch_many(definition, inputs)
    left = "select count(*) from forge_jobs where status <> 'completed'"
    incarnation = "select incarnation from forge_workers where id = $1"

    for _ in range(2):
        doomed = await workers.start(**pace)
        writer = await ledger.connection.fetchval(incarnation, doomed.id)

        async def has_written(writer: object = writer) -> bool:
            return bool(await ledger.connection.fetchval(WRITTEN, writer) > 20)

        await until(has_written, 30, "it has written some of what it counted")
        doomed.sigkill()
    last = [await workers.start(**pace) for _ in range(2)]

    async def all_completed() -> bool:
        return not await ledger.connection.fetchval(left)

    await until(all_completed, 60, "all are completed")
    for worker in last:
        worker.sigterm()
    assert await asyncio.gather(*(worker.ended() for worker in last)) == [0, 0]
    found = await compare(ledger.connection, workers.processes, unwritten=INTERVAL * 1.1 + 0.5)
    assert not found.faults, found
    assert found.total >= 250 + 250 * 3
    # The check is about something: killed workers had attempts that others counted as crashed.
    crashed = "select coalesce(sum(crashed), 0)::int from forge_statistics"
    assert await ledger.connection.fetchval(crashed) > 0
