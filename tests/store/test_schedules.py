"""Lost runs: which schedules become claimable again, and when."""

from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge.core.schedules.run import Conclusion
from forge.store import schedules, workers
from forge.store.connection.database import Database
from tests.store.placing import Psql, registered

DEAD_AFTER, STALE_AFTER = 6.0, 300.0
RUNNING = """
    insert into forge_schedules
        (type, key, next_run_at, running_since, last_heartbeat, worker_id, lease)
    values ('tick', $1, now() - interval '1 hour', now() - make_interval(mins => $2),
            now() - make_interval(mins => $3), $4, 1)
    returning id
"""


async def running(
    psql: "Psql[Any]", owner: UUID | None, *, minutes: int, beat: int | None = None
) -> UUID:
    return await psql.fetchval(RUNNING, uuid4().hex, minutes, beat, owner)


async def rescued(database: Database) -> set[UUID]:
    found = await database.run(
        schedules.rescue(None, dead_after=DEAD_AFTER, stale_after=STALE_AFTER, limit=100)
    )
    return {row["id"] for row in found}


async def test_a_run_whose_owner_is_unknown_is_lost_after_five_minutes(
    psql: "Psql[Any]", database: Database
) -> None:
    old = await running(psql, uuid4(), minutes=6)
    by_hand = await running(psql, None, minutes=6)
    await running(psql, uuid4(), minutes=4)
    await running(psql, uuid4(), minutes=60, beat=1)

    assert await rescued(database) == {old, by_hand}


async def test_a_run_is_lost_when_its_owner_is_dead_and_never_before(
    psql: "Psql[Any]", database: Database
) -> None:
    alive, dead = await registered(database), await registered(database)
    await psql.execute(
        "update forge_workers set last_heartbeat = now() - interval '7 seconds' where id = $1",
        dead.id,
    )
    lost = await running(psql, dead.id, minutes=0)
    await running(psql, alive.id, minutes=600)

    assert await rescued(database) == {lost}
    row = await psql.fetchrow("select * from forge_schedules where id = $1", lost)
    assert (row["running_since"], row["crashes"], row["consecutive_failures"]) == (None, 1, 0)
    assert row["last_error"] == "the worker died while it ran this schedule"


async def test_a_dead_worker_that_still_owns_a_run_is_not_forgotten(
    psql: "Psql[Any]", database: Database
) -> None:
    dead = await registered(database)
    await running(psql, dead.id, minutes=0)
    await psql.execute("update forge_workers set last_heartbeat = now() - interval '1 hour'")

    before = await database.run(workers.bury([dead.id], 60))
    await rescued(database)
    after = await database.run(workers.bury([dead.id], 60))

    assert (before, after) == ([], [dead.id])


async def test_only_the_last_runs_are_remembered(psql: "Psql[Any]", database: Database) -> None:
    made = await running(psql, uuid4(), minutes=0)
    for lease in range(1, 31):
        await psql.execute("update forge_schedules set running_since = now(), lease = $1", lease)
        due = await psql.fetchval("select next_run_at from forge_schedules")
        end = Conclusion(made, lease, due, due, None, None, "completed", message=f"run {lease}")
        assert await database.run(schedules.conclude([end])) == [made]

    (row,) = await psql.fetch(
        "select jsonb_array_length(recent_runs) as count, recent_runs -> 0 ->> 'message' as first, "
        "recent_runs -> -1 ->> 'message' as last from forge_schedules"
    )
    assert tuple(row) == (schedules.MAX_RECENT_RUNS, "run 30", "run 11")


async def test_an_end_that_was_written_is_known_by_its_record(
    psql: "Psql[Any]", database: Database
) -> None:
    made = await running(psql, uuid4(), minutes=0)
    due = await psql.fetchval("select next_run_at from forge_schedules")
    end = Conclusion(made, 1, due, due, None, None, "completed")

    assert await database.run(schedules.conclude([end])) == [made]
    assert await database.run(schedules.conclude([end])) == []
    assert await database.run(schedules.standing([end])) == [made]
    assert await database.run(schedules.standing([end._replace(lease=2)])) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "update forge_schedules set every = '1 hour', cron = '* * * * *'",
        "update forge_schedules set every = '0'",
        "update forge_schedules set missed = 'never'",
        "insert into forge_schedules (type) values ('twice'), ('twice')",
    ],
)
async def test_the_database_refuses_what_makes_no_sense(psql: "Psql[Any]", wrong: str) -> None:
    await running(psql, None, minutes=0)

    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await psql.execute(wrong)
