"""The claim that a message leads to: one update, of what waits or of what a dead owner left."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from forge.core.lifecycle import FINAL, Status
from forge.store import jobs, messages, workers
from forge.store.connection.database import Database
from forge.store.workers import Registration
from forge.transports.sqs.message_holder import Delete, LeaveMessage, judge
from tests.store.placing import placed, registered

LOCKED_TIMEOUT = 600.0
DEAD_AFTER = 6.0


@pytest.fixture
async def worker(database: Database) -> Registration:
    return await registered(database)


async def claim(
    database: Database,
    worker: Registration,
    *job_ids: UUID,
    dead_after: float | None = DEAD_AFTER,
) -> list[UUID]:
    statement = messages.claim(
        job_ids, worker, dead_after=dead_after, locked_timeout=LOCKED_TIMEOUT
    )
    return [job.id for job in await database.run(statement)]


async def test_what_waits_is_claimed_and_runs_at_once(
    database: Database, psql: asyncpg.Connection, worker: Registration
) -> None:
    waiting = [
        await placed(psql, status, worker=uuid4()) for status in (Status.PENDING, Status.RETRY)
    ]
    before = {id: await row(psql, id) for id in waiting}

    assert set(await claim(database, worker, *waiting)) == set(waiting)

    for job_id in waiting:
        after = await row(psql, job_id)
        assert (after["status"], after["worker_id"]) == ("running", worker.id)
        assert after["lease"] == before[job_id]["lease"] + 1
        assert after["attempts"] == before[job_id]["attempts"] + 1


@pytest.mark.parametrize("status", sorted(FINAL))
async def test_what_is_final_is_never_claimed(
    database: Database, psql: asyncpg.Connection, worker: Registration, status: Status
) -> None:
    job_id = await placed(psql, status, worker=uuid4())

    assert await claim(database, worker, job_id) == []

    assert (await row(psql, job_id))["status"] == status


async def test_what_is_not_due_is_not_claimed(
    database: Database, psql: asyncpg.Connection, worker: Registration
) -> None:
    job_id = await placed(psql, Status.PENDING, worker=uuid4())
    await psql.execute("update forge_jobs set scheduled_at = now() + interval '1 s'")

    assert await claim(database, worker, job_id) == []


@pytest.mark.parametrize("status", [Status.CLAIMED, Status.RUNNING])
async def test_what_a_living_worker_owns_is_its_own_however_old_its_lock_is(
    database: Database, psql: asyncpg.Connection, worker: Registration, status: Status
) -> None:
    owner = await registered(database)
    job_id = await placed(psql, status, worker=uuid4())
    await psql.execute(
        "update forge_jobs set worker_id = $1, claimed_at = now() - interval '1 h'", owner.id
    )

    assert await claim(database, worker, job_id) == []


@pytest.mark.parametrize("status", [Status.CLAIMED, Status.RUNNING])
async def test_what_a_dead_worker_left_is_rescued_and_claimed_in_one(
    database: Database,
    psql: asyncpg.Connection,
    worker: Registration,
    status: Status,
) -> None:
    owner = await registered(database)
    job_id = await placed(psql, status, worker=uuid4())
    await psql.execute("update forge_jobs set worker_id = $1", owner.id)
    await silence(psql, owner, timedelta(seconds=DEAD_AFTER))
    before = await row(psql, job_id)

    assert await claim(database, worker, job_id) == [job_id]

    after = await row(psql, job_id)
    assert (after["status"], after["worker_id"]) == ("running", worker.id)
    assert after["lease"] == before["lease"] + 1
    assert (after["attempts"], after["crashes"], after["suspect"]) == (
        before["attempts"],
        before["crashes"] + 1,
        status is Status.RUNNING,
    )
    lost = await psql.fetch("select * from forge_attempts where outcome = 'lost'")
    expected = [(before["lease"], owner.id)] if status is Status.RUNNING else []
    assert [(r["lease"], r["worker_id"]) for r in lost] == expected


async def test_the_dead_owner_changes_nothing_when_it_wakes_up(
    database: Database, psql: asyncpg.Connection, worker: Registration
) -> None:
    owner = await registered(database)
    job_id = await placed(psql, Status.PENDING, worker=uuid4())
    await claim(database, owner, job_id)
    lease = (await row(psql, job_id))["lease"]
    await silence(psql, owner, timedelta(seconds=DEAD_AFTER))
    await claim(database, worker, job_id)

    late = await database.run(jobs.complete([jobs.Completion(job_id, lease, None)]))

    assert late == []
    assert (await row(psql, job_id))["status"] == "running"


async def test_who_may_not_judge_takes_nothing_from_the_silent(
    database: Database, psql: asyncpg.Connection, worker: Registration
) -> None:
    owner = await registered(database)
    job_id = await placed(psql, Status.RUNNING, worker=uuid4())
    await psql.execute("update forge_jobs set worker_id = $1", owner.id)
    await silence(psql, owner, timedelta(hours=1))

    assert await claim(database, worker, job_id, dead_after=None) == []


@pytest.mark.parametrize(("age", "is_claimed"), [(590, False), (610, True)])
async def test_where_nobody_knows_the_owner_the_locked_timeout_counts(
    database: Database,
    psql: asyncpg.Connection,
    worker: Registration,
    age: int,
    is_claimed: bool,
) -> None:
    job_id = await placed(psql, Status.RUNNING, worker=uuid4())
    await psql.execute(
        "update forge_jobs set worker_id = $1, last_heartbeat = now() - make_interval(secs => $2), "
        "claimed_at = now() - interval '1 day'",
        uuid4(),
        age,
    )

    assert await claim(database, worker, job_id) == ([job_id] if is_claimed else [])


async def test_a_worker_never_claims_what_it_cannot_run(
    database: Database, psql: asyncpg.Connection, worker: Registration
) -> None:
    job_id = await placed(psql, Status.PENDING, worker=uuid4())
    others = [
        await registered(database, job_types=["other"]),
        await registered(database, queues=["mail"]),
    ]

    assert [await claim(database, other, job_id) for other in others] == [[], []]
    await psql.execute("update forge_jobs set worker_capability = 'media'")
    assert await claim(database, worker, job_id) == []
    able = await registered(database, capabilities=["media"])
    assert await claim(database, able, job_id) == [job_id]


async def test_a_former_life_of_a_worker_claims_nothing(
    database: Database, psql: asyncpg.Connection, worker: Registration
) -> None:
    job_id = await placed(psql, Status.PENDING, worker=uuid4())
    await database.run(workers.register(worker._replace(incarnation=uuid4())))

    assert await claim(database, worker, job_id) == []


async def test_a_claim_takes_its_job_out_of_the_outbox(
    database: Database, psql: asyncpg.Connection, worker: Registration
) -> None:
    job_id = await placed(psql, Status.PENDING, worker=uuid4())
    await psql.execute("insert into forge_outbox (job_id) values ($1), ($2)", job_id, uuid4())

    await claim(database, worker, job_id)

    assert await psql.fetchval("select count(*) from forge_outbox where job_id = $1", job_id) == 0
    assert await psql.fetchval("select count(*) from forge_outbox") == 1


async def test_each_message_without_a_claim_is_judged_by_where_its_job_stands(
    database: Database, psql: asyncpg.Connection, worker: Registration
) -> None:
    living, dead = await registered(database), await registered(database)
    await silence(psql, dead, timedelta(minutes=1))
    found = {
        "final": await placed(psql, Status.COMPLETED, worker=uuid4()),
        "owned": await owned(psql, living),
        "left": await owned(psql, dead),
        "soon": await due_in(psql, 30),
        "later": await due_in(psql, 3600),
        "locked": await placed(psql, Status.PENDING, worker=uuid4()),
        "foreign": await placed(psql, Status.PENDING, worker=uuid4()),
    }
    await psql.execute("update forge_jobs set job_type = 'x' where id = $1", found["foreign"])

    stands = await database.run(messages.standing([*found.values(), uuid4()], DEAD_AFTER))
    verdicts = {name: judge(stands.get(job_id), worker) for name, job_id in found.items()}

    soon = verdicts.pop("soon")
    assert isinstance(soon, LeaveMessage)
    assert soon.seconds is not None
    assert 25 < soon.seconds <= 30
    assert judge(None, worker) == Delete()
    assert verdicts == {
        "final": Delete(),
        "owned": Delete(),
        "left": LeaveMessage(None),
        "later": Delete(),
        "locked": LeaveMessage(1.0),
        "foreign": LeaveMessage(5.0),
    }


async def owned(psql: asyncpg.Connection, owner: Registration) -> UUID:
    job_id = await placed(psql, Status.RUNNING, worker=uuid4())
    await psql.execute("update forge_jobs set worker_id = $1 where id = $2", owner.id, job_id)
    return job_id


async def due_in(psql: asyncpg.Connection, seconds: int) -> UUID:
    job_id = await placed(psql, Status.PENDING, worker=uuid4())
    await psql.execute(
        "update forge_jobs set scheduled_at = now() + make_interval(secs => $1) where id = $2",
        seconds,
        job_id,
    )
    return job_id


async def silence(psql: asyncpg.Connection, owner: Registration, age: timedelta) -> None:
    await psql.execute(
        "update forge_workers set last_heartbeat = now() - $1::interval where id = $2",
        age,
        owner.id,
    )


async def row(psql: asyncpg.Connection, job_id: UUID) -> Any:
    return await psql.fetchrow("select * from forge_jobs where id = $1", job_id)
