"""Statistics of the queue: exact for thousands of jobs, bounded estimates for more."""

from typing import Any

import pytest

from forge.store import queue_statistics
from forge.store.connection.database import Database

FILL = """insert into forge_jobs (job_type, category, tenant_id)
select 'type_' || n % 4, case when n % 2 = 0 then 'sync' end, n % 5
from generate_series(1, $1::int) as n"""


async def test_a_few_jobs_are_counted_one_by_one(database: Database, psql: Any) -> None:
    await psql.execute(FILL, 1000)
    await psql.execute("update forge_jobs set status = 'cancelled' where job_type = 'type_0'")

    counted = await queue_statistics.count_jobs(database.run, None)

    assert counted.is_exact
    assert counted.counts.total == 1000
    assert counted.counts.by_status == {"cancelled": 250, "pending": 750}
    assert counted.counts.by_category == {"none": 500, "sync": 500}
    assert counted.counts.by_type == {f"type_{n}": 250 for n in range(4)}
    assert counted.counts.by_error_class == {"none": 1000}


async def test_counts_of_a_tenant_exclude_other_tenants(database: Database, psql: Any) -> None:
    await psql.execute(FILL, 1000)

    counted = await queue_statistics.count_jobs(database.run, 3)

    assert (counted.counts.total, counted.is_exact) == (200, True)


async def test_many_jobs_are_estimated(
    database: Database, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_statistics, "MAX_COUNTED", 500)
    await psql.execute(FILL, 10_000)
    await psql.execute(
        "update forge_jobs set status = 'cancelled' "
        "where id in (select id from forge_jobs order by id limit 7)"
    )
    await psql.execute("vacuum analyze forge_jobs")

    counted = await queue_statistics.count_jobs(database.run, None)

    assert not counted.is_exact
    assert counted.counts.total == pytest.approx(10_000, rel=0.05)
    assert counted.counts.by_status["cancelled"] == 7
    assert counted.counts.by_type["type_1"] == pytest.approx(2500, rel=0.1)
    assert counted.counts.by_category["none"] == pytest.approx(5000, rel=0.1)
