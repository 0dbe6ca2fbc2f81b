"""Reprocessing many that was interrupted, or overtaken: nothing is lost, and nothing done twice."""

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from forge import AlreadyReviewed, Forge
from forge.store import dead_letters
from tests.faults.kit.process import until
from tests.flow.dead_letters.conftest import Flaky
from tests.flow.dead_letters.letters import fill
from tests.flow.engine.conftest import Work

MADE = "select count(*) from forge_jobs where retry_of is not null"


async def _interrupt(
    psql: Any, request: Any, batch: Sequence[int] = (), seconds_ago: float = 0
) -> None:
    """Leave a request as a worker does that is killed after it wrote what it is about to do."""
    then = time.time() - seconds_ago
    checkpoint = {"began": then, "released": then, "batch": batch}
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


MADE_AFTER = """
    select extract(epoch from created_at - $1)::float as seconds
    from forge_jobs where retry_of is not null order by 1
"""


@pytest.mark.parametrize("unfinished", [0, 20])
async def test_what_was_due_while_no_worker_was_there_is_not_made_up_for(
    unfinished: int, app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 80)
    request = await app.dead_letters.reprocess_many(rate=20, canary=0)
    await _interrupt(psql, request, ids[:unfinished], seconds_ago=36)
    # Not from the first one made, which may come late on a busy machine.
    began = await psql.fetchval("select clock_timestamp()")
    await work(app)

    report = await request.result(60)

    assert report["reprocessed"] == 80
    made = [row["seconds"] for row in await psql.fetch(MADE_AFTER, began)]
    # A second's worth at once, and a quarter more for a slice that came late.
    assert all(count <= 20 * (seconds + 1.25) + 1 for count, seconds in enumerate(made, 1))


async def test_a_clock_that_was_ahead_holds_nothing_up(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    await fill(psql, 30)
    request = await app.dead_letters.reprocess_many(rate=20, canary=0)
    await _interrupt(psql, request, seconds_ago=-3600)
    await psql.execute(
        "update forge_jobs set checkpoint = checkpoint || jsonb_build_object('paced', $2::float8) "
        "where id = $1",
        request.id,
        time.time() + 3600,
    )
    await work(app)

    assert (await request.result(60))["reprocessed"] == 30


async def test_a_letter_whose_new_job_was_deleted_is_not_reported_as_reviewed_by_another(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 4)
    request = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    database = await (await app.session()).database()
    await database.run(dead_letters.reprocess(ids[:3], None, None, None, request_id=request.id))
    gone = "delete from forge_jobs where retry_of = (select job_id from forge_dead_letters where "
    await psql.execute(gone + "dlq_id = $1)", ids[1])
    await _interrupt(psql, request, ids[:3])
    await work(app)

    report = await request.result(60)

    assert (report["reprocessed"], report["skipped"]) == (4, 0)
    assert (report["succeeded"], report["deleted"], report["cancelled"]) == (3, 1, 0)
    failed = "select count(*) from forge_audit_events where event = 'job_dlq_reprocess_failed'"
    assert await psql.fetchval(failed) == 0
    with pytest.raises(AlreadyReviewed, match="that job was deleted; dispatch a new job instead"):
        await app.dead_letters.reprocess(ids[1])
    with pytest.raises(AlreadyReviewed, match="look at that first"):
        await app.dead_letters.reprocess(ids[0])
