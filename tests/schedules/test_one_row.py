"""One row per recurring task: running makes no other, in no table, however it ends."""

from datetime import timedelta
from typing import Any

import asyncpg

from forge import Forge, ScheduleContext, Snooze
from forge.store.schedules import MAX_RECENT_RUNS
from tests.apps import Work
from tests.schedules.conftest import Until
from tests.schedules.handlers import dies

TABLES = """
    select relname from pg_class
    where relname like 'forge\\_%' and relkind in ('r', 'p') order by relname
"""
RUNS = 3 * MAX_RECENT_RUNS


async def test_no_row_is_ever_made_by_running(
    app: Forge, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]"
) -> None:
    @app.schedule("tick", every="1ms")
    async def tick(ctx: ScheduleContext) -> timedelta | None:
        match ctx.schedule.lease % 4:
            case 0:
                raise ValueError("every fourth")
            case 1:
                raise Snooze("1ms")
            case 2:
                return timedelta(milliseconds=1)
        return None

    app.register(dies)
    await app.schedules.ensure(tick)
    await app.schedules.ensure(dies)
    await work(app)
    await becomes("tick", lambda row: row.lease >= 1)
    before = await rows_of_all_tables(psql)

    row = await becomes("tick", lambda row: row.lease >= RUNS)
    await becomes("dies", lambda row: row.consecutive_failures)

    assert await rows_of_all_tables(psql) == before
    assert before["forge_schedules"] == 2
    assert (before["forge_jobs"], before["forge_attempts"]) == (0, 0)
    assert len(row.recent_runs) == MAX_RECENT_RUNS
    assert {run["outcome"] for run in row.recent_runs} == {"completed", "failed", "snoozed"}


async def rows_of_all_tables(psql: "asyncpg.Connection[Any]") -> dict[str, int]:
    names = [row["relname"] for row in await psql.fetch(TABLES)]
    return {name: await psql.fetchval(f"select count(*) from {name}") for name in names}
