"""The overview: each figure follows the rows."""

from dataclasses import asdict
from typing import Any

from forge import Forge
from forge.core.job_counts import BoundedCount
from forge.core.lifecycle import Status
from forge.store.connection.database import Database
from tests.store.placing import Psql, insert, placed, registered

BURY = """insert into forge_dead_letters
    (job_id, job_type, queue, priority, payload, payload_version, attempt_count,
     original_created_at, original_scheduled_at)
values (forge_uuidv7(), 'mail', 'default', 50, '{}', '1.0', 1, now(), now())"""
FAILED = """insert into forge_schedules (type, key, enabled, consecutive_failures)
values ('fetch', 'a', true, 1), ('fetch', 'b', true, 4), ('fetch', 'c', false, 9),
       ('fetch', 'd', true, 0)"""


async def test_an_empty_database_has_an_overview_of_zeros(app: Forge) -> None:
    overview = await app.overview()

    assert set(overview.jobs) == set(Status)
    assert set(overview.jobs.values()) == {BoundedCount(0, "exact")}
    assert (overview.oldest_ready, overview.pauses) == (None, [])
    assert set(asdict(overview.workers).values()) == {0}
    assert (overview.slots.in_use, overview.slots.total) == (0, 0)
    assert (overview.dead_letters_waiting, overview.schedules_failing) == (
        0,
        BoundedCount(0, "exact"),
    )


async def test_each_figure_of_the_overview_follows_the_rows(
    app: Forge, database: Database, psql: "Psql[Any]"
) -> None:
    worker = (await registered(database)).id
    await registered(database)
    dead = (await registered(database)).id
    await psql.execute("update forge_workers set running = 3 where id = $1", worker)
    await psql.execute(
        "update forge_workers set last_heartbeat = now() - interval '1 day' where id = $1", dead
    )
    await app.workers.drain(worker, actor="ann")
    await placed(psql, Status.RUNNING, worker=worker)
    await placed(psql, Status.DEAD_LETTER, worker=worker)
    await insert(psql, job_type="paused")
    oldest = await insert(psql, job_type="mail", queue="slow")
    await insert(psql, job_type="mail")
    await psql.execute("update forge_jobs set scheduled_at = now() + '1h' where job_type = 'later'")
    await psql.execute("insert into forge_jobs (job_type, scheduled_at) values ('x', now() + '1h')")
    pause = await app.pause("paused", reason="full")
    await psql.execute(BURY)
    await psql.execute(FAILED)

    overview = await app.overview()

    assert {status: count.count for status, count in overview.jobs.items() if count.count} == {
        Status.PENDING: 4,
        Status.RUNNING: 1,
        Status.DEAD_LETTER: 1,
    }
    assert overview.oldest_ready is not None
    assert overview.oldest_ready.job_id == oldest
    assert (overview.oldest_ready.job_type, overview.oldest_ready.queue) == ("mail", "slow")
    assert overview.oldest_ready.waiting_seconds >= 0
    assert asdict(overview.slots) == {"in_use": 3, "total": 20}
    assert asdict(overview.workers) == {"alive": 1, "drained": 1, "draining": 0, "dead": 1}
    assert overview.dead_letters_waiting == 1
    assert overview.schedules_failing == BoundedCount(2, "exact")
    assert overview.pauses == [pause]
