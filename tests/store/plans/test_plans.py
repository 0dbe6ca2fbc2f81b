"""Plans of the hot statements: they use indexes and cost the same for any number of rows."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from forge.core.job_type import JobType
from forge.core.lifecycle import Status
from forge.core.new_job import make_new_job
from forge.core.outcome import Completion, Settlement
from forge.store import doctor, idempotency_keys, jobs
from forge.store.connection.database import Database
from forge.store.ids import new_id
from forge.store.jobs import AttemptUpdate
from forge.store.statement import Statement, load
from forge.store.workers import Registration
from tests.store.placing import Psql, claiming, registered
from tests.store.plans.crowd import (
    COMPLETE,
    EMPTY,
    assert_flat,
    complete,
    costs_of,
    fill,
    planned,
    plans_of,
    run,
)

MANY = 20_000
FEW = 1_000
# How much more a claim may cost among twenty times as many rows.
GROWTH = 1.3
BY_INDEX = {"Index Scan", "Index Only Scan", "Tid Scan"}

Make = Callable[[Registration, list[UUID], list[int]], Statement[Any]]

STATEMENTS: dict[str, Make] = {
    "claim": lambda worker, ids, lanes: claiming(lanes[:1], worker, 10),
    "claim_across": lambda worker, ids, lanes: claiming(lanes, worker, 10),
    "survey": lambda worker, ids, lanes: jobs.survey(),
    "complete": lambda worker, ids, lanes: jobs.complete([Completion(id, 1, None) for id in ids]),
    "settle": lambda worker, ids, lanes: jobs.settle(
        [Settlement(id, 1, "running", Status.RETRY, 5.0, outcome="retry") for id in ids]
    ),
    "bury": lambda worker, ids, lanes: jobs.settle(
        [Settlement(id, 1, "running", Status.DEAD_LETTER, outcome="dead_letter") for id in ids]
    ),
    "note": lambda worker, ids, lanes: jobs.note(
        [AttemptUpdate(id, 1, 50, "half", None) for id in ids]
    ),
    "rescue": lambda worker, ids, lanes: jobs.rescue(
        [worker.id], None, dead_after=0, stale_after=0, limit=100
    ),
    "start": lambda worker, ids, lanes: Statement(
        load("jobs/start"), (ids, [1 for _ in ids], ["running" for _ in ids]), list
    ),
    "standing": lambda worker, ids, lanes: jobs.standing([(id, 1) for id in ids]),
    "erase": lambda worker, ids, lanes: jobs.erase(ids, None),
    "changed": lambda worker, ids, lanes: jobs.changed(ids, [None for _ in ids]),
    "changed_view": lambda worker, ids, lanes: jobs.changed_view(ids, [1 for _ in ids]),
    "cancel": lambda worker, ids, lanes: jobs.cancel(ids, None, None),
    "reconcile": lambda worker, ids, lanes: jobs.reconcile(
        worker.id, worker.incarnation, [(id, 1) for id in ids]
    ),
    "unknown_owners": lambda worker, ids, lanes: jobs.unknown_owners(),
    "prune": lambda worker, ids, lanes: jobs.prune(UUID(int=0), 1000, completed=0, failed=0),
    "prune odd ids": lambda worker, ids, lanes: jobs.prune(
        UUID(int=0), 1000, completed=0, failed=0, of_the_future=True
    ),
    "overdue": lambda worker, ids, lanes: doctor.overdue(0, 0),
    "prune keys": lambda worker, ids, lanes: idempotency_keys.prune(0, 100),
    "dispatch_once": lambda worker, ids, lanes: jobs.dispatch_once(
        [new_id()], ["{}"], make_new_job(JobType("work"), {}), ["k"]
    ),
}


async def test_no_hot_statement_reads_the_whole_table(
    psql: "Psql[Any]", database: Database, explain: Any
) -> None:
    worker = await registered(database)
    await fill(psql, "done", MANY // 2)
    await complete(psql, "done", worker.id)
    await fill(psql, "work", MANY // 4)
    await fill(psql, "mail", MANY // 4)
    await fill(psql, "busy", 20)
    await run(psql, "busy", worker.id)
    ids = [r["id"] for r in await psql.fetch("select id from forge_jobs where job_type = 'busy'")]
    lanes = [lane.lane for lane in await database.run(jobs.survey())]
    statements = {name: make(worker, ids, lanes) for name, make in STATEMENTS.items()}

    before = await plans_of(explain, statements)
    await psql.execute("analyze")
    after = await plans_of(explain, statements)

    for name, plan in (*before.items(), *after.items()):
        ways = plan.ways_to("forge_jobs")
        assert ways <= BY_INDEX, name
        assert ways or name == "dispatch_once", name


@pytest.mark.parametrize("empty", EMPTY)
async def test_hot_statements_planned_when_there_were_no_jobs_stay_cheap_among_many(
    psql: "Psql[Any]", database: Database, explain: Any, empty: str
) -> None:
    worker = await registered(database)
    lanes = await _lanes_of(psql, "work", "mail")
    if empty == "tidied":
        await psql.execute("vacuum analyze")
    await plans_of(
        explain, {name: make(worker, [new_id()], lanes) for name, make in STATEMENTS.items()}
    )
    cost = []
    for busy, count in (("some", FEW), ("others", MANY - FEW)):
        await fill(psql, "work", count)
        await fill(psql, "mail", 20)
        await fill(psql, busy, 20)  # the newest of all, as those that run mostly are
        await run(psql, busy, worker.id)
        found = await psql.fetch("select id from forge_jobs where job_type = $1", busy)
        ids = [row["id"] for row in found]
        statements = {name: make(worker, ids, lanes) for name, make in STATEMENTS.items()}
        cost.append(await costs_of(explain, statements))
        await psql.execute(COMPLETE, busy)

    assert_flat(*cost)


@pytest.mark.parametrize(
    "crowd", ["pending in its lane", "completed", "not yet due", "of an unknown type"]
)
@pytest.mark.parametrize("lanes", [1, 2])
async def test_a_claim_costs_the_same_among_many_rows_as_among_few(
    psql: "Psql[Any]", database: Database, explain: Any, crowd: str, lanes: int
) -> None:
    worker = await registered(database)
    cost = []
    for count in (FEW, MANY - FEW):
        await _crowd(psql, crowd, count, worker)
        await _ready(psql, lanes)
        mine = await _lanes(psql, lanes)
        statement = claiming(mine, worker, 10)
        await planned(explain, statement)  # the first pass sets hint bits and warms the caches
        cost.append((await planned(explain, statement)).buffers)

    few, many = cost
    assert 0 < many <= few * GROWTH


async def test_a_survey_takes_one_step_per_lane_however_long_the_lines_are(
    psql: "Psql[Any]", database: Database, explain: Any
) -> None:
    cost = []
    for count in (FEW, MANY - FEW):
        await fill(psql, "work", count)
        await fill(psql, "mail", count)
        await planned(explain, jobs.survey())
        cost.append((await planned(explain, jobs.survey())).buffers)

    few, many = cost
    # Two lanes and the end make three steps; an index twenty times as large may be a level higher.
    assert 0 < many <= few + 3


async def _crowd(psql: "Psql[Any]", crowd: str, count: int, worker: Registration) -> None:
    match crowd:
        case "pending in its lane":
            await fill(psql, "lane_0", count)
        case "completed":
            await fill(psql, f"done_{count}", count)
            await complete(psql, f"done_{count}", worker.id)
        case "not yet due":
            await fill(psql, "lane_0", count, due_in=3600)
        case "of an unknown type":
            await fill(psql, "foreign", count)


async def _ready(psql: "Psql[Any]", lanes: int) -> None:
    """See to it that each lane has jobs to take, the oldest of all."""
    for n in range(lanes):
        await fill(psql, f"lane_{n}", 10, due_in=-3600)
    await psql.execute("vacuum analyze forge_jobs")


async def _lanes(psql: "Psql[Any]", lanes: int) -> list[int]:
    return await _lanes_of(psql, *(f"lane_{n}" for n in range(lanes)))


async def _lanes_of(psql: "Psql[Any]", *job_types: str) -> list[int]:
    found = await psql.fetch(
        "select forge_lane(name, 'default', null, 50) as lane from unnest($1::text[]) as name",
        job_types,
    )
    return [row["lane"] for row in found]
