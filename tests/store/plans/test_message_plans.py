"""Plans of the SQS transport: statements use indexes, however many jobs wait."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from forge.core.workers.lanes import BEGINNING
from forge.store import jobs, messages, outbox
from forge.store.connection.database import Database
from forge.store.ids import new_id
from forge.store.jobs import LaneCursor
from forge.store.outbox import OutboxEntry
from forge.store.statement import Statement
from forge.store.workers import Registration
from tests.store.placing import Psql, registered
from tests.store.plans.crowd import EMPTY, assert_flat, complete, costs_of, fill, plans_of

MANY = 20_000
BY_INDEX = {"Index Scan", "Index Only Scan", "Tid Scan"}
NOW = datetime.now(UTC)
ENTRIES = [OutboxEntry(n, NOW, 1, UUID(int=n), True, 50, "", None, 0.0, None) for n in (5, 6)]
Make = Callable[[Registration, list[UUID], int], Statement[Any]]

STATEMENTS: dict[str, Make] = {
    "take": lambda worker, ids, lane: outbox.take(50, 60, 3600),
    "sweep": lambda worker, ids, lane: outbox.sweep(LaneCursor(lane, *BEGINNING), 1000, 0),
    "claim": lambda worker, ids, lane: messages.claim(
        ids, worker, dead_after=6, locked_timeout=600
    ),
    "standing": lambda worker, ids, lane: messages.standing(ids, 6),
    "put_back": lambda worker, ids, lane: outbox.put_back(ENTRIES, 1, unsent=True),
    "drop": lambda worker, ids, lane: outbox.drop(ENTRIES),
}


async def test_no_statement_reads_a_whole_table(
    psql: "Psql[Any]", database: Database, explain: Any
) -> None:
    worker = await registered(database)
    await database.run(outbox.enable())
    await fill(psql, "done", MANY // 2)
    await complete(psql, "done", worker.id)
    await fill(psql, "work", MANY // 2)
    ids = [r["id"] for r in await psql.fetch("select job_id as id from forge_outbox limit 10")]
    (lane,) = await database.run(jobs.survey())
    statements = {name: make(worker, ids, lane.lane) for name, make in STATEMENTS.items()}

    before = await plans_of(explain, statements)
    await psql.execute("analyze")
    after = await plans_of(explain, statements)

    for name, plan in (*before.items(), *after.items()):
        assert plan.ways_to("forge_jobs") <= BY_INDEX, name
        assert plan.ways_to("forge_outbox") <= BY_INDEX, name
        assert plan.ways_to("forge_jobs") | plan.ways_to("forge_outbox"), name


@pytest.mark.parametrize("empty", EMPTY)
async def test_statements_planned_when_there_were_no_jobs_stay_cheap_among_many(
    psql: "Psql[Any]", database: Database, explain: Any, empty: str
) -> None:
    worker = await registered(database)
    await database.run(outbox.enable())
    if empty == "tidied":
        await psql.execute("vacuum analyze")
    await plans_of(
        explain, {name: make(worker, [new_id()], 1) for name, make in STATEMENTS.items()}
    )
    cost = []
    for count in (MANY // 20, MANY - MANY // 20):
        await fill(psql, "work", count)
        found = await psql.fetch("select job_id as id from forge_outbox order by 1 desc limit 10")
        (lane,) = await database.run(jobs.survey())
        ids = [row["id"] for row in found]
        statements = {name: make(worker, ids, lane.lane) for name, make in STATEMENTS.items()}
        cost.append(await costs_of(explain, statements))

    assert_flat(*cost)
