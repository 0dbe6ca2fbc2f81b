"""Reprocessing many that was interrupted, or overtaken: nothing is lost, and nothing done twice."""

import json
import time
from typing import Any

from forge import Forge
from forge.store import dead_letters
from tests.faults.kit.process import until
from tests.flow.dead_letters.conftest import Flaky
from tests.flow.dead_letters.letters import fill
from tests.flow.engine.conftest import Work

MADE = "select count(*) from forge_jobs where retry_of is not null"


async def _interrupt(psql: Any, request: Any, batch: list[int]) -> None:
    """Leave a request as a worker does that is killed after it wrote what it is about to do."""
    checkpoint = {"began": time.time(), "released": time.time(), "batch": batch}
    await psql.execute(
        "update forge_jobs set checkpoint = $2::text::jsonb where id = $1",
        request.id,
        json.dumps(checkpoint),
    )


async def test_what_a_killed_worker_was_about_to_do_is_done_by_the_next(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 4)
    request = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    await _interrupt(psql, request, ids[:3])
    await work(app)

    report = await request.result(60)

    assert (report["reprocessed"], report["skipped"]) == (4, 0)
    assert await psql.fetchval(MADE) == 4


async def test_what_a_killed_worker_has_done_is_counted_and_not_done_again(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 4)
    request = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    database = await (await app.session()).database()
    await database.run(dead_letters.reprocess(ids[:3], None, None, None, request_id=request.id))
    await _interrupt(psql, request, ids[:3])
    await work(app)

    report = await request.result(60)

    assert (report["reprocessed"], report["skipped"], report["succeeded"]) == (4, 0, 4)
    assert await psql.fetchval(MADE) == 4
    failed = "select count(*) from forge_audit_events where event = 'job_dlq_reprocess_failed'"
    assert await psql.fetchval(failed) == 0


async def test_one_that_somebody_reviews_at_the_same_moment_is_theirs_and_that_is_audited(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 3)
    async with psql.transaction():
        await psql.execute("select from forge_dead_letters where dlq_id = $1 for update", ids[1])
        request = await app.dead_letters.reprocess_many(rate=1000, canary=0)
        await work(app)
        # Not pg_stat_activity, which shows a transaction the sessions that it saw at first.
        waits = "select count(*) from pg_locks where not granted"
        await until(lambda: psql.fetchval(waits), 20, "the worker waits for it")
        await psql.execute(
            "update forge_dead_letters set status = 'discarded', notes = 'not this one' "
            "where dlq_id = $1",
            ids[1],
        )

    report = await request.result(60)

    assert (report["reprocessed"], report["skipped"]) == (2, 1)
    told = await psql.fetch(
        "select dlq_id from forge_audit_events where event = 'job_dlq_reprocess_failed'"
    )
    assert [row["dlq_id"] for row in told] == [ids[1]]
