"""Bulk reprocess: canaries first, at a limited rate, stopped when jobs fail again."""

import asyncio
import json
from typing import Any

import pytest

from forge import Forge, InvalidValue, JobContext, Status
from tests.apps import Work
from tests.dead_letters.conftest import Flaky
from tests.dead_letters.letters import fill
from tests.faults.kit.process import until


async def test_a_dry_run_reports_the_plan_and_changes_nothing(app: Forge, psql: Any) -> None:
    await fill(psql, 5)
    await fill(psql, 2, place="jobs:other")

    plan = await app.dead_letters.plan(job_type="flaky")

    assert (plan.letters, [group.letters for group in plan.groups]) == (7, [5, 2])
    assert await psql.fetchval("select count(*) from forge_jobs") == 0
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


async def test_a_whole_group_is_reprocessed_and_others_are_not(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 60)
    others = await fill(psql, 3, place="jobs:other")
    (group, _) = await app.dead_letters.groups()
    await work(app)

    handle = await app.dead_letters.reprocess_many(
        fingerprint=group.fingerprint, rate=100, notes="mended", actor="ann"
    )
    report = await handle.result(60)

    assert report["reprocessed"] == len(ids)
    assert report["succeeded"] == len(flaky.done) == len(ids)
    assert (report["skipped"], report["unfinished"], report["stopped"]) == (0, 0, None)
    made = await psql.fetch("select priority, parent_id from forge_jobs where retry_of is not null")
    assert {tuple(row) for row in made} == {(25, handle.id)}
    assert len(made) == len(ids)
    left = await psql.fetch(
        "select dlq_id from forge_dead_letters where status = 'pending_review' order by dlq_id"
    )
    assert [row["dlq_id"] for row in left] == others
    assert sorted(done["n"] for done in flaky.done) == list(range(1, 61))


async def test_every_letter_and_the_request_are_audited(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 3)
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, notes="mended", actor="ann")
    await handle.result(60)

    events = await psql.fetch("select event, dlq_id from forge_audit_events order by id")
    assert events[0]["event"] == "job_dlq_bulk_reprocess_requested"
    assert events[-1]["event"] == "job_dlq_bulk_reprocess_finished"
    for dlq_id in ids:
        audited = [row["event"] for row in events if row["dlq_id"] == dlq_id]
        assert audited == ["job_dlq_reprocess_requested", "job_dlq_reprocess_success"]
    actors = await psql.fetch("select distinct actor, notes from forge_audit_events")
    assert [tuple(row) for row in actors] == [("ann", "mended")]


async def test_a_canary_that_fails_again_stops_everything(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    await fill(psql, 50)
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=2, actor="ann")
    report = await handle.result(60)

    assert report["stopped"] == "a canary failed again"
    assert (report["reprocessed"], report["failed_again"]) == (2, 2)
    assert (await app.dead_letters.plan()).letters == 48 + 2
    event, detail = await psql.fetchrow(
        "select event, detail from forge_audit_events order by id desc limit 1"
    )
    assert event == "job_dlq_bulk_reprocess_stopped"
    assert json.loads(detail) == report


async def test_it_stops_when_too_many_fail_again(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    await fill(psql, 5000)
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=20, canary=0, max_failures=3)
    report = await handle.result(60)

    assert report["failed_again"] >= 3
    assert "failed again" in report["stopped"]
    assert report["reprocessed"] <= 200


async def test_a_canary_that_does_not_end_stops_everything(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    await fill(psql, 5, "nobody_has_this")
    await work(app)

    handle = await app.dead_letters.reprocess_many(canary_timeout="1s")
    report = await handle.result(60)

    assert report["stopped"] == "the canaries did not complete within 1 s"
    assert report["reprocessed"] == 1


async def test_the_rate_limit_is_kept(app: Forge, flaky: Flaky, work: Work, psql: Any) -> None:
    flaky.broken = False
    await fill(psql, 30)
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=10, canary=0)
    await handle.result(60)

    made = await psql.fetch(
        "select extract(epoch from made.created_at - request.created_at)::float as after "
        "from forge_jobs as made join forge_jobs as request on request.id = made.parent_id "
        "where made.retry_of is not null order by 1"
    )
    assert len(made) == 30
    # In slices of a second, the first one immediately; a late slice catches up, but no more.
    assert all(count <= 10 * (row["after"] + 1) + 1 for count, row in enumerate(made, 1))


async def test_one_slot_is_enough_and_ordinary_jobs_run_first(
    make_app: Any, work: Work, psql: Any
) -> None:
    app = make_app(max_concurrent=1)
    order: list[str] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def flaky(ctx: JobContext, input: dict[str, Any]) -> None:
        order.append("again")
        begun.set()
        await go_on.wait()

    @app.job
    async def ordinary(ctx: JobContext) -> None:
        order.append("ordinary")

    await fill(psql, 300)
    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    worker = await work(app)
    await asyncio.wait_for(begun.wait(), 30)
    waiting = "select count(*) from forge_jobs where job_type = 'flaky' and status = 'pending'"
    assert await psql.fetchval(waiting) > 200
    await ordinary.dispatch()
    lanes, clock = worker.finder.lanes, asyncio.get_running_loop().time
    await until(lambda: lanes.survey_is_due(clock()), 10, "the worker is to look around")
    go_on.set()

    await handle.result(60)
    await until(lambda: order.count("again") == 300, 60, "all have run")
    # Behind the running job and those that were already claimed or being claimed.
    assert order.index("ordinary") <= 1 + 3 * app.config.worker.batch_size


async def test_letters_that_were_reviewed_meanwhile_are_skipped(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    ids = await fill(psql, 10)
    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    await app.dead_letters.discard(ids[4], notes="not this one")
    later = await fill(psql, 1)
    await work(app)

    report = await handle.result(60)

    assert report["reprocessed"] == 9
    assert (await app.dead_letters.get(ids[4])).status == "discarded"
    assert (await app.dead_letters.get(later[0])).status == "pending_review"


async def test_a_request_of_one_tenant_changes_no_other(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    flaky.broken = False
    await fill(psql, 3, tenant_id=1)
    await fill(psql, 3, tenant_id=2)
    await work(app)

    handle = await app.dead_letters.reprocess_many(tenant_id=1, rate=1000)
    await handle.result(60)

    left = await psql.fetch(
        "select distinct tenant_id from forge_dead_letters where status = 'pending_review'"
    )
    assert [row["tenant_id"] for row in left] == [2]
    assert (await app.get(handle.id)).status is Status.COMPLETED


@pytest.mark.parametrize(
    "wrong",
    [{"rate": 0}, {"rate": 1001}, {"canary": -1}, {"max_failures": 0}, {"priority": 7}],
    ids=str,
)
async def test_invalid_options_are_rejected(app: Forge, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        await app.dead_letters.reprocess_many(**wrong)
