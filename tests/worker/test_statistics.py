"""Statistics: each worker counts what it has committed, in rows of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from forge import Forge, JobContext, JobFailed, NonRetryable, Snooze, Worker
from forge.core.job_statistics import OUTCOMES
from tests.apps import MakeApp, Work, fill_slots, waiting
from tests.faults.kit.process import until
from tests.store.placing import Psql

SUMS = ", ".join(f"coalesce(sum({name}), 0)::int as {name}" for name in OUTCOMES)
TIMED = """select coalesce(sum((select sum(n) from unnest(wait_counts) as n)), 0)::int as waits,
       coalesce(sum((select sum(n) from unnest(run_counts) as n)), 0)::int as runs
from forge_statistics where job_type = $1"""
WRITES = """select coalesce(sum(calls), 0)::int from pg_stat_statements
where dbid = (select oid from pg_database where datname = current_database())
  and query like '%insert into forge_statistics as own%'"""
Counted = Callable[..., Awaitable[dict[str, int]]]


@pytest.fixture
def counted(psql: "Psql[Any]") -> Counted:
    """Return what the statistics have of a type, or of a tenant, without zeros."""

    async def counted(job_type: str | None = None, tenant: int | None = None) -> dict[str, int]:
        if job_type is not None:
            text = f"select {SUMS} from forge_statistics where job_type = $1"
            row = await psql.fetchrow(text, job_type)
        else:
            text = f"select {SUMS} from forge_tenant_statistics where tenant_id = $1"
            row = await psql.fetchrow(text, tenant)
        return {name: number for name, number in row.items() if number}

    return counted


async def test_each_outcome_is_counted_when_it_is_committed(
    app: Forge, work: Work, counted: Counted, psql: "Psql[Any]"
) -> None:
    tries: dict[str, int] = {}

    @app.job(max_attempts=2)
    async def mixed(ctx: JobContext, input: dict[str, str]) -> str | None:
        how = input["how"]
        tries[how] = tries.get(how, 0) + 1
        match how, tries[how]:
            case "snooze", 1:
                raise Snooze("1ms")
            case "fail", _:
                raise NonRetryable("no")
            case "retry", 1:
                raise ValueError("again")
            case "alone", _:
                async with ctx.complete_in_transaction("done"):
                    pass
        return None

    worker = await work(app)
    for how in ("return", "snooze", "alone"):
        await (await app.dispatch("mixed", {"how": how}, tenant_id=7)).result(10)
    with pytest.raises(JobFailed):
        await (await app.dispatch("mixed", {"how": "fail"}, tenant_id=8)).result(10)
    soon = datetime.now(UTC) + timedelta(milliseconds=1)
    late = await app.dispatch("mixed", {"how": "late"}, expires_at=soon, delay="50ms")
    with pytest.raises(JobFailed):
        await late.result(10)
    again = await app.dispatch("mixed", {"how": "retry"})
    await until(lambda: _is(psql, again.id, "retry"), 10, "its retry waits")
    await app.run_now(again.id)
    await again.result(10)
    await write(worker)

    assert await counted("mixed") == {"completed": 4, "failed": 2, "retried": 1, "snoozed": 1}
    assert await counted(tenant=7) == {"completed": 3, "snoozed": 1}
    assert await counted(tenant=8) == {"failed": 1}
    # Every attempt waited, and every one but the snoozed one ran to an end.
    assert tuple((await psql.fetchrow(TIMED, "mixed")).values()) == (8, 7)
    assert (await counted("forge.run_now")) == {"completed": 1}


async def test_cancelling_and_giving_up_are_counted_with_the_transition(
    make_app: MakeApp, work: Work, counted: Counted
) -> None:
    app = make_app(max_concurrent=1)

    @app.job
    async def fails(ctx: JobContext) -> None:
        raise ValueError("again")

    worker, (running,) = await fill_slots(app, work, tenant_id=7)
    pending = await waiting(app, tenant_id=7)
    for handle in (running, pending):
        await (await handle.cancel()).result(10)
    await until(lambda: not worker.held.running, 10, "the handler has stopped")
    given_up = await fails.dispatch(tenant_id=7, queue="mail")
    await until(lambda: _has_status(app, given_up.id, "retry"), 10, "it failed")
    await (await app.delete(given_up.id)).result(10)

    # These need no write of a worker.
    assert await counted("hold") == {"cancelled": 1}
    assert await counted("waits") == {"cancelled": 1}
    assert (await counted("fails"))["failed"] == 1
    of_tenant = await counted(tenant=7)
    assert (of_tenant["cancelled"], of_tenant["failed"]) == (2, 1)


async def test_a_reprocessed_dead_letter_is_counted(
    app: Forge, work: Work, counted: Counted
) -> None:
    @app.job
    async def fails(ctx: JobContext) -> None:
        raise NonRetryable("no")

    await work(app)
    for _ in range(2):
        with pytest.raises(JobFailed):
            await (await fails.dispatch(tenant_id=7)).result(10)
    letters = (await app.dead_letters.list()).items

    await asyncio.gather(*(app.dead_letters.reprocess(one.dlq_id) for one in letters))

    assert (await counted("fails"))["reprocessed"] == 2
    assert (await counted(tenant=7))["reprocessed"] == 2


async def test_a_refused_ack_is_not_counted(
    app: Forge, work: Work, counted: Counted, psql: "Psql[Any]"
) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    @app.job
    async def gated(ctx: JobContext) -> None:
        begun.set()
        await gate.wait()

    worker = await work(app)
    handle = await gated.dispatch()
    await begun.wait()
    await psql.execute("update forge_jobs set status = 'cancelled' where id = $1", handle.id)
    gate.set()
    await write(worker)

    assert "completed" not in await counted("gated")


async def test_a_worker_has_one_row_per_minute_type_and_queue(
    make_app: MakeApp, work: Work, psql: "Psql[Any]"
) -> None:
    app = make_app(max_concurrent=50, batch_size=100)

    @app.job
    async def noop(ctx: JobContext) -> None:
        pass

    @app.job
    async def other(ctx: JobContext) -> None:
        pass

    await psql.execute("create extension pg_stat_statements")
    workers = [await work(app), await work(app)]
    for _ in range(3):
        await app.dispatch_many("noop", ({"n": n} for n in range(200)))
        await app.dispatch_many("other", ({"n": n} for n in range(200)), queue="mail")
        await until(lambda: _none_left(psql), 30, "all are completed")
        for worker in workers:
            await worker.counts.write()
            await worker.counts.write()  # nothing is new: no statement

    rows = await psql.fetch("select * from forge_statistics")
    minutes = len({row["minute"] for row in rows})
    assert sum(row["completed"] for row in rows) == 1200
    assert len(rows) <= minutes * 2 * len(workers)
    assert {row["writer"] for row in rows} <= {w.registration.incarnation for w in workers}
    # One statement for all types of a worker.
    assert 1 <= await psql.fetchval(WRITES) <= 3 * len(workers)


async def test_counts_that_could_not_be_written_for_long_are_written_later(
    app: Forge, work: Work, counted: Counted, psql: "Psql[Any]"
) -> None:
    @app.job
    async def noop(ctx: JobContext) -> None:
        pass

    worker = await work(app)
    await (await noop.dispatch(tenant_id=7)).result(10)
    await write(worker)
    await (await noop.dispatch(tenant_id=7)).result(10)
    await until(lambda: not worker.held.running, 10, "it has ended")
    # As after an outage: the minute was merged, and the second job is only in the worker's memory.
    for table in ("forge_statistics", "forge_tenant_statistics"):
        await psql.execute(f"update {table} set minute = minute - interval '10 minutes'")
    for kept in (worker.counts._tallies, worker.counts._written):
        for slot in list(kept):
            kept[slot._replace(minute=slot.minute - 600)] = kept.pop(slot)
    await worker.counts.write()

    assert await counted("noop") == {"completed": 2}
    assert await counted(tenant=7) == {"completed": 2}


async def write(worker: Worker) -> None:
    """Write what a worker has counted, once all its acks are answered."""
    acker = worker.jobs.acker
    await until(lambda: not (worker.held.running or acker.unwritten), 10, "all acks are answered")
    await worker.counts.write()


async def _is(psql: "Psql[Any]", job_id: UUID, status: str) -> bool:
    return bool(
        await psql.fetchval("select status from forge_jobs where id = $1", job_id) == status
    )


async def _has_status(app: Forge, job_id: UUID, status: str) -> bool:
    return (await app.get(job_id)).status == status


async def _none_left(psql: "Psql[Any]") -> bool:
    return not await psql.fetchval("select count(*) from forge_jobs where status <> 'completed'")
