"""Interrupted and concurrent bulk reprocesses: no letter is lost or reprocessed twice."""

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from forge import AlreadyReviewed, Forge
from forge.store import dead_letters
from tests.apps import Work
from tests.dead_letters.conftest import Flaky
from tests.dead_letters.letters import fill
from tests.faults.kit.process import until

MADE = "select count(*) from forge_jobs where retry_of is not null"


async def _interrupt(
    psql: Any, request: Any, batch: Sequence[int] = (), seconds_ago: float = 0
) -> None:
    """Leave a request in the state of a worker that was killed after it wrote its plan."""
    then = time.time() - seconds_ago
    checkpoint = {"began": then, "released": then, "batch": batch}
    await psql.execute(
        "update forge_jobs set checkpoint = $2::text::jsonb where id = $1",
        request.id,
        json.dumps(checkpoint),
    )


async def test_the_next_worker_continues_the_plan_of_a_killed_one(
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


async def test_the_work_of_a_killed_worker_is_counted_and_not_repeated(
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


async def test_a_letter_reviewed_at_the_same_time_is_skipped_and_audited(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 3)
    async with psql.transaction():
        await psql.execute("select from forge_dead_letters where dlq_id = $1 for update", ids[1])
        request = await app.dead_letters.reprocess_many(rate=1000, canary=0)
        await work(app)
        # Not pg_stat_activity, which keeps its first snapshot inside a transaction.
        waits = "select count(*) from pg_locks where not granted"
        await until(lambda: psql.fetchval(waits), 20, "the worker waits for it")
        await psql.execute(
            "update forge_dead_letters set status = 'discarded', notes = 'not this one' "
            "where dlq_id = $1",
            ids[1],
        )

    report = await request.result(60)

    assert (report["reprocessed"], report["skipped"]) == (2, 1)
    audited = await psql.fetch(
        "select dlq_id from forge_audit_events where event = 'job_dlq_reprocess_failed'"
    )
    assert [row["dlq_id"] for row in audited] == [ids[1]]


MADE_AFTER = """
    select extract(epoch from created_at - $1)::float as seconds
    from forge_jobs where retry_of is not null order by 1
"""


@pytest.mark.parametrize("unfinished", [0, 20])
async def test_time_without_a_worker_does_not_raise_the_rate(
    unfinished: int, app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 80)
    request = await app.dead_letters.reprocess_many(rate=20, canary=0)
    await _interrupt(psql, request, ids[:unfinished], seconds_ago=36)
    # Not from the first new job, which may be late on a busy machine.
    began = await psql.fetchval("select clock_timestamp()")
    await work(app)

    report = await request.result(60)

    assert report["reprocessed"] == 80
    made = [row["seconds"] for row in await psql.fetch(MADE_AFTER, began)]
    # One second's worth at once, and a quarter more for a late slice.
    assert all(count <= 20 * (seconds + 1.25) + 1 for count, seconds in enumerate(made, 1))


async def test_a_clock_that_was_ahead_causes_no_delay(
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
