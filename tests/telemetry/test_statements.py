"""Statements for metrics cost the same however many jobs there are."""

from typing import Any
from uuid import UUID

import pytest

from forge.store import queue_statistics
from forge.store.connection.database import Database
from tests.store.placing import registered
from tests.store.plans.crowd import complete, explaining, fill, planned

MANY = 20_000
CAP = 100
# Steps of an index for what is counted, and no more than a few besides.
MAX_BUFFERS = 3_000


@pytest.fixture
async def crowd(database: Database, psql: Any) -> UUID:
    """Return the last of many waiting jobs, beside as many that are done."""
    worker = await registered(database)
    await fill(psql, "done", MANY)
    await complete(psql, "done", worker.id)
    await fill(psql, "work", MANY)
    await psql.execute("analyze")
    return await psql.fetchval("select id from forge_jobs where job_type = 'work' order by id desc")  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["depth", "ahead", "started_lately"])
async def test_a_figure_never_reads_the_whole_table(
    database: Database, crowd: UUID, name: str
) -> None:
    connection = await explaining(database)
    statement: Any = {
        "depth": queue_statistics.depth(CAP),
        "ahead": queue_statistics.ahead(crowd, CAP),
        "started_lately": queue_statistics.started_lately(crowd),
    }[name]

    plan = await planned(connection, statement)

    await connection.close()
    assert plan.ways_to("forge_jobs") <= {"Index Scan", "Index Only Scan"}
    assert plan.buffers < MAX_BUFFERS


async def test_a_line_is_counted_up_to_the_cap(database: Database, crowd: UUID) -> None:
    (lane,) = await database.run(queue_statistics.depth(CAP))
    place = await database.run(queue_statistics.ahead(crowd, CAP))

    assert (lane["job_type"], lane["count"]) == ("work", CAP)
    assert place is not None
    assert place["ahead"] == CAP
