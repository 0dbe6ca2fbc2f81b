"""What became of an attempt, asked by a worker whose answer got lost."""

from typing import Any

from forge.core.event import Events
from forge.core.lifecycle import Status
from forge.core.outcome import Settlement
from forge.store import jobs
from forge.store.database import Database
from forge.store.link import Link
from forge.worker.acker import Acker
from forge.worker.stopped import StoppedAttempts
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
    events = Events()
    acker = Acker([link], events, lambda ids: None, {}, StoppedAttempts(link, events))

    known = await acker._written_before(link, [failed], "settle")
    unknown = await acker._written_before(link, [late], "settle")

    assert (known, unknown) == ({job.id}, set())
    await link.close()
