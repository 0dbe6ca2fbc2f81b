"""Moves jobs into any status, with transitions that the lifecycle allows."""

from collections import deque
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from forge.core.job import Job
from forge.core.lifecycle import LIFECYCLE, Status, Verb
from forge.core.workers.lanes import BEGINNING
from forge.store import jobs, workers
from forge.store.connection.database import Database
from forge.store.jobs import Lane, LaneCursor
from forge.store.workers import Registration

Psql = asyncpg.Connection


async def insert(psql: "Psql[Any]", **columns: Any) -> UUID:
    """Insert a pending job with plain SQL."""
    columns = {"job_type": "work"} | columns
    places = ", ".join(f"${n}" for n in range(1, len(columns) + 1))
    return await psql.fetchval(
        f"insert into forge_jobs ({', '.join(columns)}) values ({places}) returning id",
        *columns.values(),
    )


async def placed(psql: "Psql[Any]", status: Status, *, worker: UUID, **columns: Any) -> UUID:
    """Insert a job and walk it to a status."""
    job_id = await insert(psql, **columns)
    for verb, end in way_to(status):
        await psql.execute(
            "update forge_jobs set status = $2, worker_id = $3, lease = lease + $4, "
            "attempts = attempts + $4, claimed_at = now(), started_at = now() where id = $1",
            job_id,
            end,
            worker,
            int(verb is Verb.CLAIM),
        )
    return job_id


def way_to(status: Status) -> list[tuple[Verb, Status]]:
    """Return the shortest way from `pending`, as verbs and where each leads."""
    ways: deque[tuple[Status, list[tuple[Verb, Status]]]] = deque([(Status.PENDING, [])])
    while True:
        place, way = ways.popleft()
        if place is status:
            return way
        for (start, verb), end in LIFECYCLE.items():
            if start is place:
                ways.append((end, [*way, (verb, end)]))


def registration(**fields: Any) -> Registration:
    """Return a worker that may take jobs of the type `work`."""
    known = Registration(uuid4(), uuid4(), "host", 1, "0", [], None, ["work"], 10)
    return known._replace(**fields)


async def registered(database: Database, **fields: Any) -> Registration:
    """Return a worker that the database knows."""
    worker = registration(**fields)
    await database.run(workers.register(worker))
    return worker


async def claim(
    database: Database, worker: Registration, limit: int = 100, *, start: bool = True
) -> list[Job]:
    """Claim from the beginning of every lane that has jobs, of any capability."""
    lanes: list[Lane] = await database.run(jobs.survey())
    places = [LaneCursor(lane.lane, *BEGINNING) for lane in lanes]
    who: Any = {"worker": worker.id, "incarnation": worker.incarnation}
    return await database.run(jobs.claim(places, limit, start=start, lanes=lanes, **who))


def claiming(lanes: list[int], worker: Registration, limit: int, *, start: bool = True) -> Any:
    """Return the statement that claims from the beginning of these lanes."""
    places = [LaneCursor(lane, *BEGINNING) for lane in lanes]
    return jobs.claim(places, limit, start=start, worker=worker.id, incarnation=worker.incarnation)
