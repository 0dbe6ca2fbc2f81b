"""Plans: what SQS asks of the database goes by index, however many jobs wait."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from forge.core.lanes import BEGINNING
from forge.store import jobs, messages, outbox
from forge.store.database import Database
from forge.store.jobs import Place
from forge.store.statement import Statement
from forge.store.workers import Registration
from tests.plans.crowd import complete, fill, planned
from tests.store.placing import Psql, registered

MANY = 20_000
BY_INDEX = {"Index Scan", "Index Only Scan", "Tid Scan"}
Make = Callable[[Registration, list[UUID], int], Statement[Any]]

STATEMENTS: dict[str, Make] = {
    "take": lambda worker, ids, lane: outbox.take(50, 60, 3600),
    "sweep": lambda worker, ids, lane: outbox.sweep(Place(lane, *BEGINNING), 1000, 0),
    "claim": lambda worker, ids, lane: messages.claim(
        ids, worker, dead_after=6, locked_timeout=600
    ),
    "standing": lambda worker, ids, lane: messages.standing(ids, 6),
}


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_statement_never_reads_a_whole_table(
    psql: "Psql[Any]", database: Database, explain: Any, name: str
) -> None:
    worker = await registered(database)
    await database.run(outbox.enable())
    await fill(psql, "done", MANY // 2)
    await complete(psql, "done", worker.id)
    await fill(psql, "work", MANY // 2)
    ids = [r["id"] for r in await psql.fetch("select job_id as id from forge_outbox limit 10")]
    (lane,) = await database.run(jobs.survey())
    statement = STATEMENTS[name](worker, ids, lane.lane)

    before = await planned(explain, statement)
    await psql.execute("analyze")
    after = await planned(explain, statement)

    for plan in (before, after):
        assert plan.ways_to("forge_jobs") <= BY_INDEX
        assert plan.ways_to("forge_outbox") <= BY_INDEX
        assert plan.ways_to("forge_jobs") | plan.ways_to("forge_outbox")
