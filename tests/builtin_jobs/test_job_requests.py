"""Requests to run or reschedule a job: permissions and audit rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forge import Forge, JobFailed, JobHandle
from tests.apps import Work, waiting
from tests.faults.kit.process import until


async def test_run_now_starts_a_delayed_job(app: Forge, work: Work) -> None:
    handle = await waiting(app)
    await work(app)
    await (await app.run_now(handle.id)).result(10)

    assert await handle.result(10) == "ran"


async def test_reschedule_moves_a_job_to_another_time(app: Forge, work: Work) -> None:
    handle = await waiting(app)
    await work(app)
    at = datetime.now(UTC) + timedelta(days=3)
    await (await app.reschedule(handle.id, at)).result(10)

    assert (await handle.get()).scheduled_at == at


async def test_a_finished_job_is_not_rescheduled(app: Forge, work: Work) -> None:
    handle = await waiting(app, delay="0s")
    await work(app)
    await handle.result(10)

    with pytest.raises(JobFailed, match="was left alone: it is final"):
        await (await app.run_now(handle.id)).result(10)


CHANGES = {
    "reschedule": (datetime(2135, 1, 1, tzinfo=UTC),),
    "reprioritise": ("high",),
    "move": ("bulk",),
}


@pytest.mark.parametrize("verb", ["cancel", "delete", "run_now", *CHANGES])
async def test_the_job_of_another_tenant_is_not_changed_and_not_revealed(
    app: Forge, work: Work, psql: Any, verb: str
) -> None:
    handle = await waiting(app, tenant_id=1)
    before = await psql.fetchrow("select * from forge_jobs where id = $1", handle.id)
    await work(app)

    request = await getattr(app, verb)(handle.id, *CHANGES.get(verb, ()), tenant_id=2)

    with pytest.raises(JobFailed, match="there is no job"):
        await request.result(10)
    assert await psql.fetchrow("select * from forge_jobs where id = $1", handle.id) == before
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


async def test_a_job_that_moves_gets_its_message_again(app: Forge, work: Work, psql: Any) -> None:
    """The message that was sent is in the queue of its old lane."""
    handle = await waiting(app)
    other = await waiting(app)
    await psql.execute(
        "insert into forge_outbox (job_id, send_at, sends) values ($1, 'infinity', 3), "
        "($2, 'infinity', 3)",
        handle.id,
        other.id,
    )
    await work(app)

    await (await handle.move("bulk", reason="too slow")).result(10)

    rows = await psql.fetch(
        "select job_id, send_at < 'infinity' as is_near, sends from forge_outbox order by id"
    )
    assert [tuple(row) for row in rows] == [(handle.id, True, 0), (other.id, False, 3)]


@pytest.mark.parametrize("tenant", [{"tenant_id": 1}, {}])
async def test_the_tenant_itself_and_an_operator_may_cancel(
    app: Forge, work: Work, tenant: dict[str, Any]
) -> None:
    handle = await waiting(app, tenant_id=1)
    await work(app)

    await (await app.cancel(handle.id, **tenant)).result(10)

    assert (await handle.get()).status == "cancelled"


async def test_each_completed_request_has_an_audit_row(app: Forge, work: Work, psql: Any) -> None:
    caller: dict[str, Any] = {"tenant_id": 4, "auth": {"actor": "ann"}}
    moved, gone = await waiting(app, tenant_id=4), await waiting(app, tenant_id=4)
    await work(app)
    await (await app.reschedule(moved.id, datetime.now(UTC) + timedelta(1), **caller)).result(10)
    await (await app.run_now(moved.id, **caller)).result(10)
    await moved.result(10)
    await (await app.cancel(gone.id, reason="typo", **caller)).result(10)
    await (await app.delete(gone.id, **caller)).result(10)

    rows = await psql.fetch(
        "select event, job_id, actor, tenant_id, notes from forge_audit_events order by id"
    )
    assert [tuple(row) for row in rows] == [
        ("job_rescheduled", moved.id, "ann", 4, None),
        ("job_run_now", moved.id, "ann", 4, None),
        ("job_cancelled", gone.id, "ann", 4, "typo"),
        ("job_deleted", gone.id, "ann", 4, None),
    ]


async def test_an_operators_request_is_audited_for_the_tenant_of_the_job(
    app: Forge, work: Work, psql: Any
) -> None:
    moved, gone = await waiting(app, tenant_id=7), await waiting(app, tenant_id=7)
    await work(app)
    await (await app.run_now(moved.id)).result(10)
    await moved.result(10)
    await (await app.cancel(gone.id)).result(10)
    await (await app.delete(gone.id)).result(10)

    rows = await psql.fetch("select event, tenant_id from forge_audit_events order by id")

    events = ["job_run_now", "job_cancelled", "job_deleted"]
    assert [tuple(row) for row in rows] == [(event, 7) for event in events]


async def test_the_request_types_cannot_be_dispatched_directly(app: Forge) -> None:
    with pytest.raises(LookupError, match=r"call app\.cancel"):
        await app.dispatch("forge.cancel", {})


async def test_a_worker_without_jobs_of_its_own_carries_out_requests(
    app: Forge, work: Work, psql: Any
) -> None:
    job_id = await psql.fetchval(
        "insert into forge_jobs (job_type) values ('unheard_of') returning id"
    )
    await work(app)

    assert (await (await app.cancel(job_id)).result(10))["done"] == "cancelled"


async def test_a_request_that_cannot_be_audited_is_not_carried_out(
    app: Forge, work: Work, psql: Any
) -> None:
    await psql.execute("alter table forge_audit_events add constraint full_disk check (false)")
    handle = await waiting(app)
    await work(app)
    request = await app.cancel(handle.id)
    await until(lambda: _has_failed(request), 10, "the first try has failed")
    before = await handle.get()

    await psql.execute("alter table forge_audit_events drop constraint full_disk")
    output = await request.result(20)

    assert before.status == "pending"
    assert output == {"job_id": str(handle.id), "done": "cancelled"}
    assert (await handle.get()).status == "cancelled"
    events = await psql.fetch("select event, job_id from forge_audit_events")
    assert [tuple(event) for event in events] == [("job_cancelled", handle.id)]


async def _has_failed(request: JobHandle) -> bool:
    return (await request.get()).last_error is not None
