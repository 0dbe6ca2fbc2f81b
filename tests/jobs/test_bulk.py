"""Bulk actions: which jobs they change, that each is changed once, and what they leave behind."""

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from forge import Forge, InvalidValue, JobContext, Status
from forge.builtin_jobs import bulk_content, bulk_work
from forge.core.bulk import APPLIES_TO, BulkAction
from forge.core.job_filter import id_at
from forge.core.lifecycle import FINAL
from tests.apps import Work, fill_slots
from tests.faults.kit.process import until
from tests.store.placing import placed

C, D, E = Status.CANCELLED, Status.DEAD_LETTER, None
# What becomes of a job in each status; None: it is deleted.
BECOMES: dict[BulkAction, dict[Status, Status | None]] = {
    BulkAction.CANCEL: dict.fromkeys(set(Status) - FINAL, C),
    BulkAction.RUN_NOW: {},
    BulkAction.DELETE: {Status.PENDING: C, Status.RETRY: Status.FAILED} | dict.fromkeys(FINAL),
    BulkAction.RERUN: {},
    BulkAction.REPRIORITISE: {},
    BulkAction.MOVE: {},
}
OPTIONS: dict[BulkAction, Any] = {
    BulkAction.REPRIORITISE: {"priority": "high"},
    BulkAction.MOVE: {"queue": "slow"},
}
ADD = """insert into forge_jobs (job_type, scheduled_at, tenant_id)
select 'later', now() + interval '1 hour', $2 from generate_series(1, $1::int)"""
COUNT = "select status, count(*) from forge_jobs where job_type = 'later' group by 1"


async def add(psql: Any, count: int, tenant_id: int | None = None) -> None:
    await psql.execute(ADD, count, tenant_id)


async def counts(psql: Any) -> dict[str, int]:
    return {row["status"]: row["count"] for row in await psql.fetch(COUNT)}


@pytest.mark.parametrize("action", BulkAction)
async def test_an_action_changes_the_jobs_in_the_statuses_that_it_applies_to(
    app: Forge, work: Work, psql: Any, action: BulkAction
) -> None:
    later: Any = {"worker": uuid4(), "job_type": "later"}
    jobs = {status: await placed(psql, status, **later) for status in Status}
    other = await placed(psql, Status.PENDING, worker=uuid4(), job_type="other")
    await psql.execute("update forge_jobs set scheduled_at = now() + interval '1 hour'")
    plan = await app.plan_bulk(action, {"type": "later"})
    before = await psql.fetchval("select count(*) from forge_audit_events")
    await work(app)

    given = OPTIONS.get(action, {})
    handle = await app.bulk(action, {"type": "later"}, reason="a test", actor="ann", **given)
    report = await handle.result(timeout=30)

    wanted = APPLIES_TO[action]
    assert (plan.count, plan.precision) == (len(wanted), "exact")
    assert {job.id for job in plan.sample} == {jobs[status] for status in wanted}
    assert report == {
        "action": action,
        "done": len(wanted),
        "skipped": 0,
        "failed": 0,
        "locked": 0,
        "errors": [],
        "stopped": None,
    }
    rows = await psql.fetch("select id, status, scheduled_at <= now() as is_due from forge_jobs")
    found = {row["id"]: row["status"] for row in rows}
    for status, job_id in jobs.items():
        assert found.get(job_id) == BECOMES[action].get(status, status)
    due = {row["id"] for row in rows if row["is_due"]} & set(jobs.values())
    assert due == ({jobs[s] for s in wanted} if action is BulkAction.RUN_NOW else set())
    moved = await psql.fetch("select id from forge_jobs where queue = 'slow' or priority = 75")
    is_move = action in (BulkAction.REPRIORITISE, BulkAction.MOVE)
    ours = {row["id"] for row in moved} - {handle.id}
    assert ours == ({jobs[s] for s in wanted} if is_move else set())
    again = await psql.fetch(
        "select retry_of, parent_id from forge_jobs where retry_of is not null"
    )
    reruns = [(jobs[s], handle.id) for s in wanted] if action is BulkAction.RERUN else []
    assert sorted(map(tuple, again)) == sorted(reruns)
    assert found[other] == "pending"
    (event,) = (await psql.fetch("select * from forge_audit_events order by id"))[before:]
    assert (event["event"], event["actor"], event["notes"], event["job_id"]) == (
        "job_bulk_requested",
        "ann",
        "a test",
        handle.id,
    )
    detail = json.loads(event["detail"])
    assert (detail["action"], detail["count"]) == (action, len(wanted))
    assert detail["filter"]["job_type"] == "later"


async def test_jobs_created_after_the_request_are_left_alone(
    app: Forge, work: Work, psql: Any
) -> None:
    await add(psql, 3)
    handle = await app.bulk("cancel", {"type": "later"}, reason="a test")
    await add(psql, 2)
    await work(app)

    assert (await handle.result(timeout=30))["done"] == 3
    assert await counts(psql) == {"cancelled": 3, "pending": 2}


async def test_jobs_that_no_longer_match_are_skipped(app: Forge, work: Work, psql: Any) -> None:
    await add(psql, 4)
    ids = [row["id"] for row in await psql.fetch("select id from forge_jobs order by id")]
    handle = await app.bulk("cancel", ids=ids, reason="a test")
    await psql.execute("update forge_jobs set status = 'cancelled' where id = $1", ids[0])
    await psql.execute("delete from forge_jobs where id = $1", ids[1])
    await work(app)

    report = await handle.result(timeout=30)

    assert (report["done"], report["skipped"]) == (2, 2)


@pytest.mark.parametrize("is_crowded", [False, True])
async def test_many_slices_act_on_each_job_once(
    app: Forge, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch, is_crowded: bool
) -> None:
    monkeypatch.setattr(bulk_work, "SLICE", 7)
    monkeypatch.setattr("forge.store.bulk.choose.__defaults__", (20,))
    if is_crowded:
        monkeypatch.setattr("forge.store.bulk.MAX_LIVE", 10)
    await add(psql, 100, tenant_id=7)
    await psql.execute(
        "update forge_jobs set status = 'cancelled' "
        "where id in (select id from forge_jobs limit 30)"
    )
    versions = dict(map(tuple, await psql.fetch("select id, version from forge_jobs")))
    await work(app)

    handle = await app.bulk("cancel", {"tenant_id": 7}, reason="a test")
    again = await app.bulk("rerun", {"type": "later"}, reason="a test", queue="slow")
    reports = await handle.result(timeout=60), await again.result(timeout=60)

    assert reports[0]["done"] == 70
    assert reports[1]["done"] in range(30, 101)  # both act at the same time
    changed = await psql.fetch(
        "select id, version from forge_jobs where retry_of is null and queue <> 'forge'"
    )
    assert Counter(row["version"] - versions[row["id"]] for row in changed) == {1: 70, 0: 30}
    made = await psql.fetch(
        "select retry_of, queue, tenant_id from forge_jobs where retry_of is not null"
    )
    assert len({row["retry_of"] for row in made}) == len(made) == reports[1]["done"]
    assert {(row["queue"], row["tenant_id"]) for row in made} == {("slow", 7)}
    assert (await handle.get()).tenant_id == 7


async def test_a_search_in_the_content_selects_the_jobs_that_the_list_shows(
    app: Forge, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_content, "COMPARED", 7)
    monkeypatch.setattr("forge.store.bulk.MAX_BYTES", 200)
    monkeypatch.setattr("forge.store.bulk.choose.__defaults__", (20,))
    monkeypatch.setattr("forge.store.bulk.MAX_LIVE", 10)
    await psql.execute(
        "insert into forge_jobs (job_type, scheduled_at, input, last_error) "
        "select 'later', now() + interval '1 hour', jsonb_build_object("
        "'orders', jsonb_build_array(n % 10), 'password', 'hunter2'), 'No answer of mx' || n "
        "from generate_series(1, 60) as n"
    )
    search: Any = {"type": "later", "q": "ANSWER OF MX1", "input": {"orders": 3}}
    plan = await app.plan_bulk("cancel", search)
    other: Any = {"type": "later", "q": "answer of mx2", "input": {"orders": 3}}
    ids = [job.id for job in (await app.list_jobs(**search)).items]
    (changed,) = (job.id for job in (await app.list_jobs(**other)).items)
    await work(app)

    async with psql.transaction():
        await psql.execute("update forge_jobs set last_error = 'no route' where id = $1", changed)
        handle = await app.bulk("cancel", other, reason="a test")
        await until(lambda: _says(handle, "0 of 1 cancelled, 1 locked"), 30, "it is locked")
    reports = [await handle.result(timeout=30)]
    for criteria in (search, {"q": "hunter2"}):
        again = await app.bulk("cancel", criteria, reason="a test")
        reports.append(await again.result(timeout=30))

    assert (plan.count, plan.precision) == (1, "exact")
    assert [job.id for job in plan.sample] == ids
    counts = [(report["done"], report["skipped"]) for report in reports]
    assert counts == [(0, 1), (1, 0), (0, 0)]
    cancelled = "select id from forge_jobs where status = 'cancelled'"
    assert [row["id"] for row in await psql.fetch(cancelled)] == ids
    audited = "select detail from forge_audit_events where job_id = $1"
    said = json.loads(await psql.fetchval(audited, handle.id))["filter"]
    assert (said["q"], said["input"]) == ("answer of mx2", {"orders": "3"})


async def test_a_job_that_another_transaction_has_locked_is_acted_on_when_it_is_free(
    app: Forge, work: Work, psql: Any
) -> None:
    await add(psql, 3)
    ids = [row["id"] for row in await psql.fetch("select id from forge_jobs order by id")]
    await work(app)
    async with psql.transaction():
        await psql.execute("select from forge_jobs where id = $1 for update", ids[1])
        handle = await app.bulk("cancel", {"type": "later"}, reason="a test")
        await until(lambda: _says(handle, "2 of 3 cancelled, 1 locked"), 20, "it waits for one")
        assert (await app.get(ids[2])).status == "cancelled"

    report = await handle.result(timeout=30)

    assert (report["done"], report["locked"]) == (3, 0)


async def test_a_job_that_the_database_refuses_to_change_does_not_stop_the_others(
    app: Forge, work: Work, psql: Any
) -> None:
    await add(psql, 50)
    poison = await psql.fetchval("select id from forge_jobs offset 20 limit 1")
    await psql.execute(
        "alter table forge_jobs add constraint poison "
        f"check (id <> '{poison}' or status <> 'cancelled')"
    )
    await work(app)

    handle = await app.bulk("cancel", {"type": "later"}, reason="a test")
    report = await handle.result(timeout=30)

    assert (report["done"], report["failed"], report["stopped"]) == (49, 1, None)
    assert str(poison) in report["errors"][0]
    assert "poison" in report["errors"][0]


async def test_a_request_stops_when_the_database_refuses_too_many(
    app: Forge, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_work, "MAX_FAILED", 5)
    await add(psql, 20)
    await psql.execute(
        "alter table forge_jobs add constraint poison "
        "check (job_type <> 'later' or status <> 'cancelled')"
    )
    await work(app)

    handle = await app.bulk("cancel", {"type": "later"}, reason="a test")
    report = await handle.result(timeout=30)

    assert (report["done"], len(report["errors"])) == (0, 5)
    assert report["stopped"].startswith(f"{report['failed']} jobs could not be changed: job ")


async def test_running_handlers_are_stopped_though_they_fill_all_slots(
    app: Forge, work: Work
) -> None:
    worker, held = await fill_slots(app, work)

    handle = await app.bulk("cancel", {"type": "hold"}, reason="they hang")

    assert (await handle.result(timeout=30))["done"] == len(held)
    await until(lambda: worker.held.slots_taken == 0, 20, "the handlers were stopped")
    assert (await held[0].get()).last_error == "they hang"


async def test_cancelling_the_request_stops_it(app: Forge, work: Work, psql: Any) -> None:
    await add(psql, 100)
    await work(app)
    handle = await app.bulk("cancel", {"type": "later"}, reason="a test", rate=5)
    await until(lambda: _has_begun(psql), 20, "some are cancelled")

    await (await handle.cancel("enough")).result(timeout=20)
    await until(lambda: _is(handle, "cancelled"), 20, "it is cancelled")
    left = (await counts(psql))["pending"]
    # Another request passes through the same lane meanwhile.
    await (await app.bulk("cancel", all=True, reason="a test")).result(timeout=30)

    assert left > 50
    assert await counts(psql) == {"cancelled": 100}


async def test_jobs_that_workers_run_meanwhile_end_once(
    app: Forge, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_work, "SLICE", 20)

    @app.job
    async def quick(ctx: JobContext) -> None: ...

    await app.dispatch_many(quick, [None] * 600)
    handle = await app.bulk("cancel", {"type": "quick"}, reason="a test")
    await work(app)
    await work(app)

    report = await handle.result(timeout=60)
    await until(lambda: _all_final(psql), 30, "the others have run")

    rows = await psql.fetch(
        "select status, count(*) from forge_jobs where job_type = 'quick' group by 1"
    )
    found = {row["status"]: row["count"] for row in rows}
    assert report["done"] == found.pop("cancelled", 0)
    assert report["done"] + found.pop("completed", 0) == 600
    assert (found, report["failed"], report["locked"]) == ({}, 0, 0)


async def test_nothing_is_read_behind_the_last_id_that_can_match(
    app: Forge, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge.store.bulk.choose.__defaults__", (10,))
    monkeypatch.setattr("forge.store.bulk.MAX_LIVE", 10)
    old = """insert into forge_jobs (id, job_type, created_at)
    select (lpad(to_hex(1500000000000 + n), 12, '0') || '70008000000000000000')::uuid, 'later',
           '2017-07-14T02:40:00Z' from generate_series(1, 15) as n"""
    await psql.execute(old)
    await add(psql, 200)
    await work(app)

    handle = await app.bulk("cancel", {"until": datetime(2017, 8, 1, tzinfo=UTC)}, reason="a test")

    assert (await handle.result(timeout=30))["done"] == 15
    # It stopped after the first page of new jobs.
    reached = json.loads(
        await psql.fetchval("select checkpoint from forge_jobs where id = $1", handle.id)
    )["after"]
    newer = "select count(*) from forge_jobs where job_type = 'later' and id between $1 and $2"
    of_2020 = id_at(datetime(2020, 1, 1, tzinfo=UTC))
    assert await psql.fetchval(newer, of_2020, UUID(reached)) <= 10


async def test_ids_of_any_kind_are_acted_on(app: Forge, work: Work, psql: Any) -> None:
    for job_id in (uuid4(), UUID(int=1), UUID(int=2**128 - 2)):
        await psql.execute("insert into forge_jobs (id, job_type) values ($1, 'later')", job_id)
    await work(app)

    handle = await app.bulk("cancel", {"type": "later"}, reason="a test")

    assert (await handle.result(timeout=30))["done"] == 3


async def test_a_request_written_in_sql_stays_in_its_tenant_and_name(
    app: Forge, work: Work, psql: Any
) -> None:
    await add(psql, 2, tenant_id=7)
    await add(psql, 2, tenant_id=8)
    await psql.execute("update forge_jobs set status = 'cancelled'")
    forged = {"action": "rerun", "filter": {"tenant_id": 8}, "auth": {"name": "ceo"}}
    job_id = await psql.fetchval(
        "insert into forge_jobs (job_type, queue, priority, tenant_id, auth, input) "
        """values ('forge.bulk', 'forge', 75, 7, '{"name": "ann", "actor": "ann"}', $1)
        returning id""",
        json.dumps(forged),
    )
    await work(app)

    report = await app.handle(job_id).result(timeout=30)

    assert report["done"] == 2
    made = await psql.fetch("select tenant_id, auth from forge_jobs where retry_of is not null")
    assert [(row["tenant_id"], json.loads(row["auth"])) for row in made] == [
        (7, {"name": "ann"}),
        (7, {"name": "ann"}),
    ]


async def test_jobs_of_a_paused_queue_are_acted_on(app: Forge, work: Work, psql: Any) -> None:
    await app.pause(queue="default", reason="a test")
    await add(psql, 3)
    await work(app)

    handle = await app.bulk("run_now", {"queue": "default"}, reason="a test")
    report = await handle.result(timeout=30)
    again = await (await app.bulk("run_now", all=True, reason="a test")).result(timeout=30)

    assert (report["done"], again["done"], again["skipped"]) == (3, 0, 3)
    assert await counts(psql) == {"pending": 3}


async def test_the_rate_limits_how_many_jobs_are_changed(app: Forge, work: Work, psql: Any) -> None:
    await add(psql, 30)
    began = await psql.fetchval("select clock_timestamp()")
    await work(app)

    await (await app.bulk("cancel", all=True, reason="a test", rate=20)).result(timeout=60)

    times = await psql.fetch(
        "select extract(epoch from cancelled_at - $1)::float as seconds from forge_jobs "
        "where status = 'cancelled' order by 1",
        began,
    )
    # One second's worth at once, and a quarter more for a late slice.
    assert all(n <= 20 * (row["seconds"] + 1.25) + 1 for n, row in enumerate(times, 1))


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (("stop", {"type": "x"}), {}, "action must be one of cancel, run_now"),
        (("cancel",), {}, "one of filter, ids and all"),
        (("cancel", {"type": "x"}), {"all": True}, "one of filter, ids and all"),
        (("cancel", {"type": "x"}), {"ids": [str(UUID(int=1))]}, "one of filter, ids and all"),
        (("cancel", {}), {}, "the filter is empty"),
        (("cancel", {"type": "x", "status": "completed"}), {}, "cancel applies to jobs that are"),
        (("cancel", {"q": ""}), {}, "q must be text of 1 to 200 characters"),
        (("cancel", {"input": {"": 1}}), {}, "path and value have from 1 to 200"),
        (("cancel", {"input": {"a": []}}), {}, "is compared with a text, number, boolean"),
        (("cancel",), {"ids": []}, "ids must be a list of 1 to 5,000"),
        (("cancel",), {"ids": ["x"]}, "ids must be a UUID"),
        (("cancel",), {"all": True, "rate": 0}, "rate must be above 0"),
        (("cancel",), {"all": True, "rate": 1e9}, "leave it out to go as fast as possible"),
        (("cancel",), {"all": True, "rate": float("nan")}, "rate must be above 0"),
        (
            ("cancel",),
            {"all": True, "queue": "slow"},
            "cancel takes no queue, which is for rerun, move",
        ),
        (("move",), {"all": True}, "move needs the queue that the jobs get"),
        (("reprioritise",), {"all": True}, "reprioritise needs the priority"),
        (("reprioritise",), {"all": True, "priority": 7}, "priority must be one of"),
        (("cancel",), {"all": True, "reason": " "}, "a bulk action needs a reason"),
        (("cancel",), {"all": True, "speed": 1}, "bulk has no option 'speed'"),
    ],
    ids=str,
)
async def test_what_is_not_allowed_is_refused_and_explained(
    app: Forge, psql: Any, args: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        await app.bulk(*args, **{"reason": "a test", **options})
    assert await psql.fetchval("select count(*) from forge_jobs") == 0
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


async def _says(handle: Any, message: str) -> bool:
    return (await handle.get()).progress_message == message


async def _is(handle: Any, status: str) -> bool:
    return (await handle.get()).status == status


async def _all_final(psql: Any) -> bool:
    left = "select count(*) from forge_jobs where status in ('pending', 'claimed', 'running')"
    return bool(await psql.fetchval(left) == 0)


async def _has_begun(psql: Any) -> bool:
    return (await counts(psql)).get("cancelled", 0) > 0
