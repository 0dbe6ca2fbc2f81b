"""Plans of schedules: claims use indexes and cost the same however many are due."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from forge.core.schedules.run import NO_QUEUE, Conclusion
from forge.core.workers.lanes import BEGINNING
from forge.store import schedules
from forge.store.connection.database import Database
from forge.store.ids import new_id
from forge.store.jobs import Lane, LaneCursor
from forge.store.schedules import RunUpdate
from forge.store.statement import Statement
from forge.store.workers import Registration
from tests.store.placing import Psql, registered
from tests.store.plans.crowd import EMPTY, assert_flat, cost_of, costs_of, planned, plans_of

FEW, MANY = 1_000, 100_000
# How much more a claim may cost among a hundred times as many rows: an index one level higher.
GROWTH = 1.3
BY_INDEX = {"Index Scan", "Index Only Scan", "Tid Scan"}
# Ids in the order of the rows, as schedules made one by one have them: those of one millisecond are
# in no order, and the rows of a list would lie in as many pages as chance has it.
FILL = """
    insert into forge_schedules (id, type, key, worker_capability, priority, enabled, next_run_at)
    select lpad(to_hex((select count(*) from forge_schedules) + n), 32, '0')::uuid,
           $1, n, $3, $4, $5, now() + make_interval(secs => $6) - make_interval(secs => n * 0.001)
    from generate_series(1, $2) as n
"""
RUN = """
    update forge_schedules set running_since = now(), worker_id = $2, lease = 1 where type = $1
"""
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Make = Callable[[Registration, list[UUID], list[int]], Statement[Any]]

STATEMENTS: dict[str, Make] = {
    "survey": lambda worker, ids, lanes: schedules.survey(),
    "claim": lambda worker, ids, lanes: claiming(worker, lanes),
    "conclude": lambda worker, ids, lanes: schedules.conclude(
        [Conclusion(id, 1, NOW, NOW, None, None, "completed") for id in ids]
    ),
    "note": lambda worker, ids, lanes: schedules.note([RunUpdate(id, 1, None) for id in ids]),
    "standing": lambda worker, ids, lanes: schedules.standing(
        [Conclusion(id, 1, NOW, NOW, None, None, "completed") for id in ids]
    ),
    "rescue": lambda worker, ids, lanes: schedules.rescue(
        None, dead_after=0, stale_after=0, limit=100
    ),
    "reconcile": lambda worker, ids, lanes: schedules.reconcile(
        worker.id, worker.incarnation, [(id, 1) for id in ids]
    ),
    "release": lambda worker, ids, lanes: schedules.release([(id, 1) for id in ids]),
    "find": lambda worker, ids, lanes: schedules.find("mine", "7", None),
    "find of a tenant": lambda worker, ids, lanes: schedules.find("mine", "7", 3),
    "enable": lambda worker, ids, lanes: schedules.enable(ids[0], True),
    "run_now": lambda worker, ids, lanes: schedules.run_now(ids[0]),
    "get": lambda worker, ids, lanes: schedules.get(ids[0]),
    "list": lambda worker, ids, lanes: schedules.listed(None, None, None, None, None, 50),
}


async def test_no_statement_reads_the_whole_table(
    psql: "Psql[Any]", database: Database, explain: Any
) -> None:
    worker = await registered(database)
    await fill(psql, "mine", 5_000)
    await fill(psql, "resting", 5_000, enabled=False)
    await fill(psql, "busy", 20)
    await psql.execute(RUN, "busy", worker.id)
    ids = [r["id"] for r in await psql.fetch("select id from forge_schedules where type = 'busy'")]
    lanes = [lane.lane for lane in await database.run(schedules.survey())]
    statements = {name: make(worker, ids, lanes) for name, make in STATEMENTS.items()}

    before = await plans_of(explain, statements)
    await psql.execute("analyze")
    after = await plans_of(explain, statements)

    for name, plan in (*before.items(), *after.items()):
        assert plan.ways_to("forge_schedules") <= BY_INDEX, name
        assert plan.ways_to("forge_schedules"), name
        assert plan.buffers < 1_000, name


@pytest.mark.parametrize("empty", EMPTY)
async def test_statements_planned_when_there_were_no_schedules_stay_cheap_among_many(
    psql: "Psql[Any]", database: Database, explain: Any, empty: str
) -> None:
    worker = await registered(database)
    if empty == "tidied":
        await psql.execute("vacuum analyze")
    await plans_of(
        explain, {name: make(worker, [new_id()], [1]) for name, make in STATEMENTS.items()}
    )
    cost = []
    for busy, count in (("some", 500), ("others", 9_500)):
        await fill(psql, f"mine {busy}", count, type="mine")
        await fill(psql, busy, 20)
        await psql.execute(RUN, busy, worker.id)
        found = await psql.fetch("select id from forge_schedules where type = $1", busy)
        lanes = [lane.lane for lane in await database.run(schedules.survey())]
        ids = [row["id"] for row in found]
        statements = {name: make(worker, ids, lanes) for name, make in STATEMENTS.items()}
        cost.append(await costs_of(explain, statements))
        await psql.execute("update forge_schedules set running_since = null where type = $1", busy)

    assert_flat(*cost)


@pytest.mark.parametrize(
    "crowd",
    ["due as well", "not yet due", "disabled", "of another type", "of another capability"],
)
async def test_a_claim_costs_the_same_among_a_hundred_thousand_as_among_a_thousand(
    psql: "Psql[Any]", database: Database, explain: Any, crowd: str
) -> None:
    worker = await registered(database)
    await fill(psql, "mine", 10, due_in=-3600)
    (lane,) = await database.run(schedules.survey())
    statement = claiming(worker, [lane.lane])
    cost = []
    for count in (FEW, MANY - FEW):
        await _crowd(psql, crowd, count)
        await psql.execute("vacuum analyze forge_schedules")
        await planned(explain, statement)  # the first pass sets hint bits and warms the caches
        plan = await planned(explain, statement)
        assert plan.ways_to("forge_schedules") <= BY_INDEX
        cost.append(plan.buffers)

    few, many = cost
    assert 0 < many <= few * GROWTH


async def test_a_survey_takes_one_step_per_lane_however_many_are_due(
    psql: "Psql[Any]", database: Database, explain: Any
) -> None:
    cost = []
    for count in (FEW, MANY // 5):
        await fill(psql, f"a{count}", count, type="a")
        await fill(psql, f"b{count}", count, type="b")
        # Rebuilt, its pages are cut at the same places each time: where pages happen to be split
        # between two lanes, a step looks at one page more, which is no step of its own.
        await psql.execute("reindex table forge_schedules")
        await psql.execute("vacuum analyze forge_schedules")
        cost.append(await cost_of(explain, schedules.survey()))

    few, many = cost
    # Two lanes and the end make three steps; a larger index may be a level higher.
    assert 0 < many <= few + 3


def claiming(worker: Registration, lanes: list[int]) -> Statement[Any]:
    places = [LaneCursor(lane, *BEGINNING) for lane in lanes]
    return schedules.claim(
        places,
        10,
        worker=worker.id,
        incarnation=worker.incarnation,
        rules={},
        lanes=[Lane(lane, "mine", NO_QUEUE, None, 0, 0) for lane in lanes],
    )


async def fill(
    psql: "Psql[Any]",
    prefix: str,
    count: int,
    *,
    type: str | None = None,
    capability: str | None = None,
    priority: int = 50,
    enabled: bool = True,
    due_in: float = 0.0,
) -> None:
    """Add schedules, each due a millisecond before the one that was made before it."""
    filled = FILL.replace("n, $3", f"'{prefix} ' || n, $3")
    await psql.execute(filled, type or prefix, count, capability, priority, enabled, float(due_in))


async def _crowd(psql: "Psql[Any]", crowd: str, count: int) -> None:
    name = f"crowd {count}"
    match crowd:
        case "due as well":
            await fill(psql, name, count, type="mine")
        case "not yet due":
            await fill(psql, name, count, type="mine", due_in=86400)
        case "disabled":
            await fill(psql, name, count, type="mine", enabled=False, due_in=-7200)
        case "of another type":
            await fill(psql, name, count, type="foreign", priority=100, due_in=-7200)
        case "of another capability":
            await fill(psql, name, count, type="mine", capability="gpu", due_in=-7200)
