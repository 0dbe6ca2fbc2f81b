"""Row security costs a worker, which serves all tenants, nothing."""

from typing import Any

import pytest

from forge.core.workers.lanes import BEGINNING
from forge.store import jobs, schedules
from forge.store.connection.database import Database
from forge.store.connection.tenant import as_secured
from forge.store.jobs import LaneCursor
from tests.faults.kit.process import until
from tests.store.placing import claiming, registered
from tests.store.plans.crowd import explaining, planned
from tests.store.plans.test_plans import STATEMENTS
from tests.store.row_security.conftest import as_role


@pytest.mark.parametrize("name", [*STATEMENTS])
async def test_a_worker_plans_as_if_there_were_no_policies(
    filled: Any, psql: Any, database: Database, name: str
) -> None:
    worker = await registered(database)
    await psql.execute(
        "insert into forge_jobs (job_type) select 'busy' from generate_series(1, 500)"
    )
    await psql.execute("analyze")
    ids = [row["id"] for row in await psql.fetch("select id from forge_jobs limit 20")]
    lanes = [lane.lane for lane in await database.run(jobs.survey())]
    statement = STATEMENTS[name](worker, ids, lanes)

    connection = await explaining(database)
    as_owner = await planned(connection, statement)
    await connection.execute("set role forge_worker")
    as_worker = await planned(connection, as_secured(statement))

    await connection.close()
    assert as_worker.nodes == as_owner.nodes


async def test_a_worker_claims_from_a_long_lane_without_reading_all_of_it(
    filled: Any, psql: Any, database: Database
) -> None:
    worker = await registered(database)
    await psql.execute(
        "insert into forge_jobs (job_type) select 'busy' from generate_series(1, 20000)"
    )
    as_worker = Database(as_role("forge_worker", database.url))
    busy = next(lane for lane in await as_worker.run(jobs.survey()) if lane.job_type == "busy")
    read = "select idx_tup_read from pg_stat_user_indexes where indexrelname = 'forge_jobs_ready'"
    before = await psql.fetchval(read) or 0

    claimed = [
        job
        for lanes in ([busy.lane], [busy.lane, busy.lane + 1])
        for job in await as_worker.run(claiming(lanes, worker, 10))
    ]

    await as_worker.close()
    await until(lambda: _has_grown(psql, read, before), 10, "the server has counted")
    assert len(claimed) == 20
    assert await psql.fetchval(read) - before < 1000


async def test_a_worker_claims_schedules_as_if_there_were_no_policies(
    filled: Any, psql: Any, database: Database
) -> None:
    worker = await registered(database)
    await psql.execute(
        "insert into forge_schedules (type, key, next_run_at) "
        "select 'busy', n, now() from generate_series(1, 5000) as n"
    )
    await psql.execute("analyze")
    lanes = await database.run(schedules.survey())
    places = [LaneCursor(lane.lane, *BEGINNING) for lane in lanes]
    statement = schedules.claim(
        places, 10, worker=worker.id, incarnation=worker.incarnation, rules={}, lanes=lanes
    )

    connection = await explaining(database)
    as_owner = await planned(connection, statement)
    await connection.execute("set role forge_worker")
    as_worker = await planned(connection, as_secured(statement))

    await connection.close()
    assert as_worker.nodes == as_owner.nodes
    assert as_worker.buffers < 2 * as_owner.buffers


async def _has_grown(psql: Any, counted: str, before: int) -> bool:
    return bool((await psql.fetchval(counted) or 0) > before)
