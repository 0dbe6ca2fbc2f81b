"""More job types than one claim asks: the oldest job of an urgency does not starve."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forge import Forge, JobContext
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until

# Jobs per busy type: more than a worker runs while the test looks.
EACH = 500


@pytest.mark.parametrize("types", [17, 100, 1000])
async def test_the_oldest_job_is_in_the_first_claim(
    make_app: MakeApp, work: Work, psql: Any, types: int
) -> None:
    app = _app(make_app, types)
    await _feed(psql, types - 1)
    oldest = await app.dispatch(f"type_{types - 1}", scheduled_at=_yesterday())

    await work(app)
    await oldest.result(20)

    earlier = """select count(*) from forge_jobs
    where claimed_at < (select claimed_at from forge_jobs where id = $1)"""
    assert await psql.fetchval(earlier, oldest.id) == 0


async def test_an_old_job_overtakes_newer_ones_in_every_lane_of_a_busy_worker(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    types = 33
    app = _app(make_app, types, max_concurrent=1, batch_size=1)
    await _feed(psql, types)
    await work(app)
    started = "select count(*) from forge_jobs where status = 'completed'"
    await until(lambda: psql.fetchval(started), 20, "the worker is busy")

    old = [await app.dispatch(f"type_{n}", scheduled_at=_yesterday()) for n in range(types)]
    for handle in old:
        await handle.result(20)

    # No lane was emptied before the old jobs of the others had their turn.
    waiting = "select count(distinct job_type) from forge_jobs where status = 'pending'"
    assert await psql.fetchval(waiting) == types


def _app(make_app: MakeApp, types: int, **settings: Any) -> Forge:
    app = make_app(**settings)

    async def noop(ctx: JobContext) -> None: ...

    for n in range(types):
        app.job(name=f"type_{n}")(noop)
    return app


async def _feed(psql: Any, types: int) -> None:
    """Keep many types busy: each has jobs of the last hour, none has few."""
    await psql.execute(
        f"""insert into forge_jobs (job_type, scheduled_at)
        select 'type_' || n % {types}, now() - interval '1 hour' + n * interval '1 ms'
        from generate_series(1, {max(17 * EACH, types * 2)}) as n"""
    )


def _yesterday() -> datetime:
    return datetime.now(UTC) - timedelta(days=1)
