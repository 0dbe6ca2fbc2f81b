"""Claims: which jobs a worker gets, and in which order."""

from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from forge.builtin_jobs.definitions import REQUESTS
from forge.core.job import Job
from forge.core.lifecycle import Status
from forge.core.workers.lanes import Lanes
from forge.operations.serving import serves
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.jobs import Lane, LaneCursor
from forge.store.workers import Registration, register
from tests.store.placing import Psql, claim, claiming, insert, placed, registered

TYPES = ("work", "mail", "scan")
PRIORITIES = (100, 75, 50, 25, 0)


@pytest.mark.parametrize("batch", [1, 3, 7])
async def test_the_most_urgent_go_first_and_then_the_oldest_whatever_their_type_and_queue(
    psql: "Psql[Any]", database: Database, batch: int
) -> None:
    worker = await registered(database, job_types=list(TYPES))
    for n in range(60):
        await _insert(
            psql,
            seconds_ago=(n * 37) % 101,
            job_type=TYPES[n % 3],
            priority=PRIORITIES[(n * 7) % 5],
            queue=("default", "side")[n % 2],
        )

    taken = await _claim_all(database, worker, batch)

    assert [job.id for job in taken] == await _in_order(psql)


async def test_a_claim_takes_at_most_its_limit(psql: "Psql[Any]", database: Database) -> None:
    worker = await registered(database)
    for job_type in ("work", "mail"):
        for _ in range(10):
            await insert(psql, job_type=job_type)

    assert len(await claim(database, worker, 7)) == 7
    assert len(await claim(database, worker, 7)) == 7
    assert len(await claim(database, worker, 7)) == 6
    assert await claim(database, worker, 7) == []


@pytest.mark.parametrize("lanes", [1, 3])
async def test_two_claims_at_once_neither_share_a_job_nor_wait_for_each_other(
    psql: "Psql[Any]", database: Database, lanes: int
) -> None:
    worker = await registered(database, job_types=list(TYPES))
    for n in range(12):
        await insert(psql, job_type=TYPES[n % lanes])
    named = [lane.lane for lane in await database.run(jobs.survey())]
    statement = claiming(named, worker, 6)

    async with database.acquire() as first, database.acquire() as second, first.transaction():
        one = statement.read(await first.fetch(statement.sql, *statement.args))
        # The first is not committed: a claim that waited for it would never return.
        other = statement.read(await second.fetch(statement.sql, *statement.args, timeout=10))

    assert len(one) == 6
    assert {job.id for job in one}.isdisjoint(job.id for job in other)
    rest = await claim(database, worker)
    assert len({job.id for job in (*one, *other, *rest)}) == 12


async def test_a_job_is_not_taken_before_its_time(psql: "Psql[Any]", database: Database) -> None:
    worker = await registered(database)
    await _insert(psql, seconds_ago=-3600)

    (lane,) = await database.run(jobs.survey())
    taken = await database.run(claiming([lane.lane], worker, 10))

    assert taken == []
    assert 3500 < lane.due_in <= 3600


@pytest.mark.parametrize("at", ["1969-12-31 23:59:59+00", "0001-01-01 BC", "-infinity"])
async def test_a_job_scheduled_before_1970_is_taken(
    psql: "Psql[Any]", database: Database, at: str
) -> None:
    worker = await registered(database)
    old = await psql.fetchval(
        f"insert into forge_jobs (job_type, scheduled_at) values ('work', '{at}') returning id"
    )
    later = await insert(psql)

    taken = await claim(database, worker)

    assert [job.id for job in sorted(taken, key=lambda job: job.due)] == [old, later]
    assert taken[0].scheduled_at <= taken[1].scheduled_at


async def test_a_job_scheduled_for_never_holds_up_no_other(
    psql: "Psql[Any]", database: Database
) -> None:
    worker = await registered(database)
    await psql.execute(
        "insert into forge_jobs (job_type, scheduled_at) values ('work', 'infinity')"
    )
    (parked,) = await database.run(jobs.survey())
    due = await insert(psql)

    (job,) = await claim(database, worker)

    assert parked.due_in == parked.head == float("inf")
    assert job.id == due


async def test_a_retry_is_taken_when_it_is_due_and_not_before(
    psql: "Psql[Any]", database: Database
) -> None:
    worker = await registered(database)
    due = await placed(psql, Status.RETRY, worker=worker.id)
    later = await placed(psql, Status.RETRY, worker=worker.id)
    await psql.execute(
        "update forge_jobs set scheduled_at = now() + interval '1 hour' where id = $1", later
    )

    (job,) = await claim(database, worker)

    assert job.id == due
    assert (job.attempt, job.lease) == (2, 2)


async def test_a_claim_records_worker_time_and_attempt(
    psql: "Psql[Any]", database: Database
) -> None:
    worker = await registered(database)
    job_id = await insert(psql, progress_percent=40, progress_message="half of an earlier try")

    (job,) = await claim(database, worker)

    row = await psql.fetchrow("select *, now() - claimed_at as since from forge_jobs")
    assert (job.id, job.lease, job.attempt) == (job_id, 1, 1)
    assert (row["status"], row["worker_id"], row["lease"]) == ("running", worker.id, 1)
    assert row["started_at"] == row["claimed_at"]
    assert timedelta(0) <= row["since"] < timedelta(minutes=1)
    assert (row["progress_percent"], row["progress_message"]) == (0, None)


async def test_a_job_fetched_ahead_is_claimed_and_not_started(
    psql: "Psql[Any]", database: Database
) -> None:
    worker = await registered(database)
    await insert(psql)

    await claim(database, worker, start=False)

    row = await psql.fetchrow("select status, claimed_at, started_at from forge_jobs")
    assert row["status"] == "claimed"
    assert row["claimed_at"] is not None
    assert row["started_at"] is None


@pytest.mark.parametrize("lanes", [1, 3])
async def test_a_worker_that_was_replaced_is_given_nothing(
    psql: "Psql[Any]", database: Database, lanes: int
) -> None:
    earlier = await registered(database)
    later = await registered(database, id=earlier.id)
    for n in range(lanes):
        await insert(psql, job_type=TYPES[n])

    assert await claim(database, earlier) == []
    assert len(await claim(database, later)) == lanes


async def test_an_unregistered_worker_claims_nothing(psql: "Psql[Any]", database: Database) -> None:
    worker = await registered(database)
    await insert(psql)
    await psql.execute("delete from forge_workers")

    assert await claim(database, worker) == []

    await database.run(register(worker))
    assert len(await claim(database, worker)) == 1


@pytest.mark.parametrize(
    ("lane", "worker", "may"),
    [
        ({}, {}, True),
        ({"job_type": "other"}, {}, False),
        ({"worker_capability": "media"}, {}, False),
        ({"worker_capability": "media"}, {"capabilities": ["general"]}, False),
        ({"worker_capability": "media"}, {"capabilities": ["general", "media"]}, True),
        ({}, {"capabilities": ["media"]}, True),
        ({"queue": "side"}, {}, True),
        ({"queue": "side"}, {"queues": ["default"]}, False),
        ({"queue": "side"}, {"queues": ["default", "side"]}, True),
        ({"queue": "forge", "job_type": "forge.cancel"}, {"queues": ["side"]}, True),
        ({"queue": "forge", "job_type": "forge.unheard_of"}, {}, False),
        ({"queue": "forge"}, {}, False),
    ],
)
async def test_a_worker_takes_the_types_queues_and_capabilities_it_has(
    psql: "Psql[Any]",
    database: Database,
    lane: dict[str, Any],
    worker: dict[str, Any],
    may: bool,
) -> None:
    known = await registered(database, **worker)
    job_id = await insert(psql, **lane)

    taken = await _claim_all(database, known, 10)

    assert [job.id for job in taken] == ([job_id] if may else [])


async def test_what_a_worker_may_not_take_does_not_keep_it_from_the_rest(
    psql: "Psql[Any]", database: Database
) -> None:
    worker = await registered(database)
    for n in range(40):
        await insert(psql, job_type=f"unknown_{n}", priority=100)
    job_id = await insert(psql, priority=0)

    assert [job.id for job in await _claim_all(database, worker, 10)] == [job_id]


async def test_jobs_of_more_lanes_than_fit_in_one_claim_are_all_taken(
    psql: "Psql[Any]", database: Database
) -> None:
    types = [f"type_{n}" for n in range(40)]
    worker = await registered(database, job_types=types)
    for job_type in types:
        await insert(psql, job_type=job_type)

    assert {job.type for job in await _claim_all(database, worker, 10)} == set(types)


async def _claim_all(database: Database, worker: Registration, batch: int) -> list[Job]:
    """Claim as a worker does, until a fresh survey finds nothing for it."""
    lanes = Lanes(lambda lane: serves(worker, lane, REQUESTS))  # type: ignore[arg-type]
    taken: list[Job] = []
    names: dict[tuple[Any, ...], int] = {}
    for now in count():
        if lanes.survey_is_due(now):
            found: list[Lane] = await database.run(jobs.survey())
            lanes.surveyed(found, now, 0)
            names = {
                (lane.job_type, lane.queue, lane.worker_capability, 100 - lane.urgency): lane.lane
                for lane in found
            }
        asked = lanes.next()
        if not asked:
            return taken
        claimed = await database.run(_claiming_from(asked, worker, batch))
        lanes.took(asked, claimed, batch, lambda job: names[_lane(job)])  # noqa: B023
        taken += sorted(claimed, key=lambda job: (-job.priority, job.scheduled_at, job.id))
    raise AssertionError("count() has no end")


def _claiming_from(asked: list[Any], worker: Registration, limit: int) -> Any:
    places = [LaneCursor(*place) for place in asked]
    return jobs.claim(places, limit, start=True, worker=worker.id, incarnation=worker.incarnation)


def _lane(job: Any) -> tuple[Any, ...]:
    return job.type, job.queue, job.worker_capability, job.priority


async def _insert(psql: "Psql[Any]", *, seconds_ago: float, **columns: Any) -> None:
    job_id = await insert(psql, **columns)
    await psql.execute(
        "update forge_jobs set scheduled_at = now() - make_interval(secs => $2) where id = $1",
        job_id,
        float(seconds_ago),
    )


async def _in_order(psql: "Psql[Any]") -> list[Any]:
    found = await psql.fetch("select id from forge_jobs order by priority desc, scheduled_at, id")
    return [row["id"] for row in found]
