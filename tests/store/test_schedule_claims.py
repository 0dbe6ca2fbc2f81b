"""Claims of schedules: which workers get which schedules."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from forge.core.schedules.run import Run
from forge.core.workers.lanes import BEGINNING
from forge.store import schedules, workers
from forge.store.connection.database import Database
from forge.store.jobs import LaneCursor
from forge.store.workers import Registration
from tests.store.placing import Psql, registered

MAKE = """
    insert into forge_schedules (type, key, next_run_at)
    values ($1, $2, now() - make_interval(secs => $3))
"""


async def claim(database: Database, worker: Registration, limit: int) -> list[Run]:
    lanes = await database.run(schedules.survey())
    places = [LaneCursor(lane.lane, *BEGINNING) for lane in lanes]
    return await database.run(
        schedules.claim(
            places,
            limit,
            worker=worker.id,
            incarnation=worker.incarnation,
            rules={},
            lanes=lanes,
        )
    )


def keys(runs: Sequence[Run]) -> set[str]:
    return {run.schedule.key for run in runs}


async def test_the_oldest_of_all_types_are_claimed_first_and_each_by_one(
    psql: "Psql[Any]", database: Database
) -> None:
    one, two = await registered(database), await registered(database)
    made = [("tick", "a", 1.0), ("tock", "b", 3.0), ("tick", "c", 2.0), ("tock", "later", -60.0)]
    for type, key, late in made:
        await psql.execute(MAKE, type, key, late)

    assert keys(await claim(database, one, 2)) == {"b", "c"}
    assert keys(await claim(database, two, 9)) == {"a"}
    assert await claim(database, one, 9) == []


async def test_what_another_claims_at_this_moment_is_stepped_over(
    psql: "Psql[Any]", database: Database
) -> None:
    worker = await registered(database)
    for key in ("held", "free"):
        await psql.execute(MAKE, "tick", key, 1.0)

    async with psql.transaction():
        await psql.execute("select from forge_schedules where key = 'held' for update")
        taken = await claim(database, worker, 9)

    assert keys(taken) == {"free"}


async def test_a_worker_that_was_replaced_by_a_later_one_of_its_name_claims_nothing(
    psql: "Psql[Any]", database: Database
) -> None:
    worker = await registered(database)
    await psql.execute(MAKE, "tick", "a", 1.0)
    heir = worker._replace(incarnation=uuid4())
    await database.run(workers.register(heir))

    assert await claim(database, worker, 9) == []
    assert keys(await claim(database, heir, 9)) == {"a"}
