"""Jobs whose owners are unknown or dead, where SQS is the transport."""

from typing import Any
from uuid import UUID, uuid4

import asyncpg

from forge import Forge
from forge.core.lifecycle import Status
from forge.store.connection.database import Database
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.store.placing import placed, registered
from tests.transports.conftest import transport
from tests.transports.handlers import rest

Psql = asyncpg.Connection
# Only the rescue may find these jobs: no message names them.
QUICK = {"heartbeat_interval": "100ms", "dead_after": "300ms", "stale_threshold": "1s"}


async def test_the_locked_timeout_decides_about_unknown_owners_and_not_the_stale_threshold(
    make_app: MakeApp, work: Work, aws: str, queue: str, psql: "Psql[Any]"
) -> None:
    app = make_app(**QUICK, transport=transport(aws, queue, locked_timeout="10m"))
    app.register(rest)
    young = await _silent_for(psql, "9 m")
    old = await _silent_for(psql, "11 m")

    await work(app)
    await app.handle(old).result(timeout=30)

    assert (await app.handle(young).get()).status == "running"
    await psql.execute(
        "update forge_jobs set claimed_at = claimed_at - interval '2 m' where id = $1", young
    )
    await app.handle(young).result(timeout=30)


async def test_a_job_of_a_dead_worker_returns_within_ten_seconds_by_default(
    make_app: MakeApp,
    work: Work,
    aws: str,
    queue: str,
    psql: "Psql[Any]",
    database: Database,
) -> None:
    defaults = {"heartbeat_interval": "2s", "dead_after": "6s"}
    app = make_app(**defaults, transport=transport(aws, queue, locked_timeout="10m"))
    app.register(rest)
    await work(app)
    died = await registered(database)
    job_id = await placed(psql, Status.RUNNING, worker=died.id, job_type="rest")

    await until(lambda: _is_back(app, job_id), 10, "the job is back")
    await app.handle(job_id).result(timeout=30)


async def _is_back(app: Forge, job_id: UUID) -> bool:
    return (await app.handle(job_id).get()).crashes == 1


async def _silent_for(psql: "Psql[Any]", interval: str) -> UUID:
    job_id = await placed(psql, Status.RUNNING, worker=uuid4(), job_type="rest")
    await psql.execute(
        "update forge_jobs set claimed_at = now() - $2::text::interval, last_heartbeat = null "
        "where id = $1",
        job_id,
        interval,
    )
    return job_id
