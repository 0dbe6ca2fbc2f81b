"""forge_demand(): how much work waits, as an autoscaler asks."""

import asyncio
from typing import Any, NamedTuple

import asyncpg
import pytest
import yaml

from forge import Forge, JobContext
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.surface.pages import CHECKOUT

KEDA = CHECKOUT / "deploy" / "kubernetes" / "keda" / "scaledobject.yaml"


class Demand(NamedTuple):
    ready: int
    running: int
    soon: int
    oldest_seconds: float
    slots: int


@pytest.fixture
def app(make_app: MakeApp) -> Forge:
    app = make_app()

    @app.job
    async def greet(ctx: JobContext, input: dict[str, Any]) -> None: ...

    @app.schedule("look")
    async def look(ctx: Any) -> None: ...

    return app


async def demand(psql: Any, queue: str | None = None, *arguments: str) -> Demand:
    given = ", ".join(["$1", *arguments])
    row = await psql.fetchrow(f"select * from forge_demand({given})", queue)
    return Demand(*row.values())


async def test_nothing_waits(app: Forge, psql: Any) -> None:
    assert await demand(psql) == (0, 0, 0, 0, 0)


async def test_due_jobs_count_by_queue(app: Forge, psql: Any) -> None:
    for number in range(3):
        await app.dispatch("greet", {}, priority=("low", "normal", "high")[number])
    await app.dispatch("greet", {}, queue="mail")
    await psql.execute(
        "update forge_jobs set scheduled_at = now() - interval '40 s' where queue = 'mail'"
    )

    everywhere, default, mail, other = [
        await demand(psql, queue) for queue in (None, "default", "mail", "other")
    ]

    assert (everywhere.ready, default.ready, mail.ready, other.ready) == (4, 3, 1, 0)
    assert (everywhere.slots, default.slots, mail.slots, other.slots) == (4, 3, 1, 0)
    assert 40 <= mail.oldest_seconds < 100
    assert everywhere.oldest_seconds >= 40 > default.oldest_seconds


async def test_a_job_that_is_due_soon_keeps_one_slot(app: Forge, psql: Any) -> None:
    await app.dispatch("greet", {}, delay="50s")
    await app.dispatch("greet", {}, delay="50s")
    await app.dispatch("greet", {}, delay="1h", queue="later")

    assert (await demand(psql, "default"))[:3] == (0, 0, 1)  # one lane
    assert (await demand(psql, "default")).slots == 1
    assert (await demand(psql, "default", "interval '10 s'")).slots == 0
    assert (await demand(psql, "later")).slots == 0


async def test_running_jobs_keep_their_slots(app: Forge, work: Work, psql: Any) -> None:
    end = asyncio.Event()

    @app.job
    async def hold(ctx: JobContext) -> None:
        await end.wait()

    await work(app)
    await app.dispatch("hold", {})

    async def is_running() -> bool:
        return (await demand(psql)).running == 1

    await until(is_running, 20, "the job runs")
    found = await demand(psql)
    assert (found.ready, found.slots) == (0, 1)
    end.set()


async def test_schedules_count_before_they_are_due(app: Forge, psql: Any) -> None:
    await app.schedules.ensure("look", every="1h")

    assert (await demand(psql)).slots == 1  # due at once
    await psql.execute("update forge_schedules set next_run_at = now() + interval '30 s'")
    assert (await demand(psql))[2:] == (1, 0, 1)
    assert (await demand(psql, None, "interval '1 minute'", "false")).slots == 0
    await psql.execute("update forge_schedules set next_run_at = now() + interval '1 h'")
    assert (await demand(psql)).slots == 0
    await psql.execute("update forge_schedules set next_run_at = now(), enabled = false")
    assert (await demand(psql)).slots == 0


async def test_paused_work_does_not_count(app: Forge, psql: Any) -> None:
    await app.dispatch("greet", {})
    await app.dispatch("greet", {}, queue="mail")
    await app.schedules.ensure("look", every="1h")
    assert (await demand(psql)).slots == 3

    await app.pause(type="look", reason="a test")
    await app.pause(queue="mail", reason="a test")
    assert (await demand(psql)).slots == 1
    await app.pause(type="greet", for_="2m", reason="a test")
    assert (await demand(psql)).slots == 0
    assert (await demand(psql, None, "interval '5 minutes'")).slots == 1


async def test_a_login_of_an_autoscaler_needs_one_right(
    app: Forge, psql: Any, database_url: str
) -> None:
    """The queries and grants of deploy/kubernetes/keda, as they stand there."""
    await app.dispatch("greet", {})
    text = KEDA.read_text()
    scaled = next(d for d in yaml.safe_load_all(text) if d["kind"] == "ScaledObject")
    queries = [trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"]]
    assert "grant execute on function forge_demand to keda" in text

    await psql.execute("create role keda")
    try:
        await psql.execute("set role keda")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await psql.fetchval(queries[0])
        await psql.execute("reset role; grant execute on function forge_demand to keda")
        await psql.execute("set role keda")
        values = [await psql.fetchval(query) for query in queries]
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await psql.fetchval("select count(*) from forge_jobs")
    finally:
        await psql.execute("reset role; drop owned by keda; drop role keda")

    assert values[0] == 1
    assert values[1] >= 0


async def test_a_backlog_is_not_counted_to_its_end(app: Forge, psql: Any) -> None:
    await app.dispatch_many("greet", [{}] * 10_050)

    assert (await demand(psql)).ready == 10_000
