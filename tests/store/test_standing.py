"""A worker whose ack got no answer reads what was recorded of the attempt."""

from typing import Any
from uuid import uuid4

from forge.core.events import Events
from forge.core.lifecycle import Status
from forge.core.outcome import Settlement
from forge.core.workers.clock import DatabaseClock
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.connection.link import Link
from forge.transports.postgres import PostgresTransport
from forge.worker.attempt_counts import AttemptCounts
from forge.worker.held_work import HeldWork
from forge.worker.job_reports import JobReports
from forge.worker.job_source import JobAcker
from forge.worker.loops import WorkSignals
from tests.store.placing import Psql, claim, insert, registered


async def test_a_recorded_failure_is_known_also_when_another_has_claimed_the_job(
    psql: "Psql[Any]", database: Database
) -> None:
    worker, other = await registered(database), await registered(database)
    await insert(psql)
    (job,) = await claim(database, worker)
    failed = Settlement(
        job.id, job.lease, "running", Status.RETRY, 0.0, message="no", outcome=Status.RETRY
    )
    late = failed._replace(outcome="crashed")
    await database.run(jobs.settle([failed]))
    await claim(database, other)
    link: Link = database.link()
    events, held = Events(), HeldWork(1)
    transport = PostgresTransport(database, link, 1.0, events)
    acker = JobAcker(
        [link],
        held,
        WorkSignals(),
        {},
        JobReports(link, transport, events),
        AttemptCounts(link, DatabaseClock(0.0), uuid4(), events),
    )

    known = await acker._written_before(link, [failed], "settle")
    unknown = await acker._written_before(link, [late], "settle")

    assert (known, unknown) == ({job.id}, set())
    await link.close()
