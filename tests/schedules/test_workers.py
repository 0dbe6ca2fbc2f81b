"""Schedules and jobs share workers: slots, priorities, capabilities, start-up, shutdown."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from forge import Forge, JobContext, ScheduleContext, Worker
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.schedules.conftest import Until

HOUR = timedelta(hours=1)


async def test_jobs_and_runs_share_the_slots(make_app: MakeApp, work: Work) -> None:
    app = make_app(max_concurrent=3)
    running, most, ended = 0, 0, 0
    together = asyncio.Barrier(3)

    async def busy() -> None:
        nonlocal running, most, ended
        running += 1
        most = max(most, running)
        await together.wait()
        running -= 1
        ended += 1

    @app.job
    async def job(ctx: JobContext) -> None:
        await busy()

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> timedelta:
        await busy()
        return HOUR

    for n in range(30):
        await app.schedules.ensure(tick, str(n))
    await app.dispatch_many(job, [{}] * 30)
    await work(app)

    await until(lambda: ended == 60, 20, "all have run")
    assert most == 3


async def test_neither_jobs_nor_schedules_starve_the_other(make_app: MakeApp, work: Work) -> None:
    app = make_app(max_concurrent=1)
    order: list[str] = []

    @app.job
    async def job(ctx: JobContext) -> None:
        order.append("job")

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> timedelta:
        order.append("run")
        return HOUR

    for n in range(60):
        await app.schedules.ensure(tick, str(n))
    await app.dispatch_many(job, [{}] * 60)
    await work(app)

    await until(lambda: len(order) == 120, 20, "all have run")
    assert order[:60].count("job") >= 10
    assert order[:60].count("run") >= 10


async def test_the_most_urgent_goes_first_whether_job_or_schedule(
    make_app: MakeApp, work: Work
) -> None:
    app = make_app(max_concurrent=1, batch_size=1)
    order: list[str] = []

    @app.job
    async def job(ctx: JobContext, input: dict) -> None:
        order.append(input["name"])

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> timedelta:
        order.append(ctx.schedule.key)
        return HOUR

    for priority in ("low", "critical", "normal"):
        await app.schedules.ensure(tick, f"run {priority}", priority=priority)
    for priority in ("background", "high"):
        await app.dispatch(job, {"name": f"job {priority}"}, priority=priority)
    await work(app)

    await until(lambda: len(order) == 5, 20, "all have run")
    assert order == ["run critical", "job high", "run normal", "run low", "job background"]


async def test_a_worker_takes_only_what_it_has_the_type_and_capability_for(
    make_app: MakeApp, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]"
) -> None:
    app = make_app(capabilities=["media"], queues=["mail"])
    ran: list[str] = []

    @app.schedule("tick")
    async def tick(ctx: ScheduleContext) -> timedelta:
        ran.append(ctx.schedule.key)
        return HOUR

    await app.schedules.ensure("foreign")
    await app.schedules.ensure(tick, "gpu", worker_capability="gpu")
    await app.schedules.ensure(tick, "media", worker_capability="media")
    await app.schedules.ensure(tick, "any", priority="background")
    await work(app)

    await becomes("tick", lambda row: row.last_run_at, "any")
    assert ran == ["media", "any"]
    left = await psql.fetch("select type, key from forge_schedules where lease = 0 order by type")
    assert [tuple(row) for row in left] == [("foreign", ""), ("tick", "gpu")]


async def test_what_runs_by_the_clock_makes_its_row_when_a_worker_starts(
    make_app: MakeApp, work: Work, becomes: Until
) -> None:
    apps = [make_app() for _ in range(3)]
    for app in apps:

        @app.cron("* * * * * *", type="every_second", priority="high")
        async def every_second(ctx: ScheduleContext) -> None:
            assert ctx.schedule.next_run_at.microsecond == 0

    await asyncio.gather(*(work(app) for app in apps))

    row = await becomes("every_second", lambda row: row.lease >= 2)
    assert (row.cron, row.tz, row.priority, row.key) == ("* * * * * *", "UTC", 75, "")
    assert len(await apps[0].schedules.list()) == 1
    assert {run["outcome"] for run in row.recent_runs} == {"completed"}


async def test_a_cron_that_was_disabled_stays_so_and_one_that_was_changed_is_planned_anew(
    make_app: MakeApp, work: Work
) -> None:
    before, after = make_app(), make_app()

    @before.cron("0 3 1 1 *", tz="Europe/Paris")
    async def nightly(ctx: ScheduleContext) -> None: ...

    await work(before)
    planned = (await before.schedules.disable("nightly")).next_run_at

    @after.cron("0 4 1 1 *", tz="Europe/Paris", type="nightly")
    async def nightly_later(ctx: ScheduleContext) -> None: ...

    await work(after)
    row = await after.schedules.get("nightly")

    assert not row.enabled
    assert row.next_run_at - planned == HOUR


async def test_what_the_code_no_longer_says_of_a_cron_goes_from_its_row(
    make_app: MakeApp, work: Work
) -> None:
    before, after = make_app(capabilities=["gpu"]), make_app()

    @before.cron("0 3 1 1 *", jitter="5m", missed="skip", priority="high", worker_capability="gpu")
    async def nightly(ctx: ScheduleContext) -> None: ...

    await work(before)
    old = await before.schedules.get("nightly")

    @after.cron("0 3 1 1 *", type="nightly")
    async def nightly_for_all(ctx: ScheduleContext) -> None: ...

    await work(after)
    new = await after.schedules.get("nightly")

    assert (old.jitter, old.worker_capability) == (timedelta(minutes=5), "gpu")
    assert (new.jitter, new.worker_capability) == (None, None)
    assert (new.missed, new.priority) == ("once", 50)
    assert (new.id, new.next_run_at) == (old.id, old.next_run_at)


@pytest.mark.parametrize("how", ["drained", "released"])
async def test_draining_lets_runs_end_and_release_gives_them_back(
    make_app: MakeApp, app: Forge, how: str
) -> None:
    own = make_app(shutdown_grace="10s")
    began, may_end = asyncio.Event(), asyncio.Event()

    @own.schedule("slow")
    async def slow(ctx: ScheduleContext) -> timedelta:
        began.set()
        await may_end.wait()
        return HOUR

    made = await own.schedules.ensure("slow")
    worker = Worker(own)
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(began.wait(), 10)

    if how == "drained":
        worker.drain()
        assert (await app.schedules.get("slow")).running_since is not None
        may_end.set()
    else:
        worker.release()
    await asyncio.wait_for(running, 10)

    row = await app.schedules.get("slow")
    assert (row.running_since, row.lease, row.consecutive_failures) == (None, 1, 0)
    outcomes = [run["outcome"] for run in row.recent_runs]
    assert outcomes == (["completed"] if how == "drained" else ["released"])
    assert (row.crashes, row.suspect) == (int(how == "released"), False)
    assert (row.next_run_at == made.next_run_at) == (how == "released")


async def test_a_run_that_its_worker_does_not_know_of_is_given_back(
    make_app: MakeApp, work: Work, becomes: Until, psql: "asyncpg.Connection[Any]"
) -> None:
    """A claim whose answer was lost."""
    app = make_app()
    began = asyncio.Event()

    @app.schedule("slow")
    async def slow(ctx: ScheduleContext) -> timedelta:
        began.set()
        return HOUR

    worker = await work(app)
    await app.schedules.ensure("slow", next_run_at=None)
    await began.wait()
    await becomes("slow", lambda row: row.last_run_at)
    await psql.execute(
        "update forge_schedules set running_since = now(), lease = lease + 1, worker_id = $1",
        worker.registration.id,
    )
    worker.claims.lost_any = True

    row = await becomes("slow", lambda row: row.running_since is None)
    assert row.lease == 2


async def test_a_run_that_is_anothers_by_now_is_stopped(
    app: Forge, work: Work, psql: "asyncpg.Connection[Any]"
) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    @app.schedule("slow")
    async def slow(ctx: ScheduleContext) -> timedelta:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            if ctx.cancelled:
                stopped.set()
        return HOUR

    await app.schedules.ensure("slow")
    await work(app)
    await asyncio.wait_for(began.wait(), 10)
    await psql.execute("update forge_schedules set lease = lease + 1, worker_id = $1", uuid4())

    await asyncio.wait_for(stopped.wait(), 20)
    row = await app.schedules.get("slow")
    assert (row.lease, row.running_since is not None, row.recent_runs) == (2, True, [])
