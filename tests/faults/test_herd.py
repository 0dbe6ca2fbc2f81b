"""Many at once: failures do not come back together, and one job does not wake everybody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forge import Config, Forge, Worker
from tests.faults.apps.handlers import failing
from tests.faults.apps.plain import plain
from tests.faults.kit.crew import Crew
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.process import until

FAILURES = 1000
DELAYS = """
    select extract(epoch from job.scheduled_at - attempt.ended_at)::float8 as delay
    from forge_jobs as job
    join forge_attempts as attempt on attempt.job_id = job.id and attempt.lease = 1
"""
IDLE_WORKERS = 50
# For one job a few are called, each of whom looks once and may try once.
MOST_QUESTIONS = 10
QUESTIONS = """
    select coalesce(sum(calls), 0)::integer
    from pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database())
      and (query like '%with recursive lanes%' or query like '%lease = lease + 1%')
"""


async def test_jobs_that_fail_together_are_tried_again_apart(
    app: Forge, crew: Crew, ledger: Ledger
) -> None:
    """Fault 35: each tenth of the time in question gets about its share of the retries."""
    await app.dispatch_many(failing, ({} for _ in range(FAILURES)))
    await crew.start(max_concurrent=100, batch_size=100)

    async def all_failed() -> bool:
        return len(await ledger.connection.fetch(DELAYS)) == FAILURES

    await until(all_failed, 60, "every job has failed once")
    delays = [row["delay"] for row in await ledger.connection.fetch(DELAYS)]

    assert min(delays) >= 1.6
    assert max(delays) <= 2.4
    tenths = Counter(int((delay - 1.6) / 0.08) for delay in delays)
    assert len(tenths) >= 10
    # A hundred each on average: seven standard deviations either way.
    assert all(33 < tenths[tenth] < 167 for tenth in range(10)), tenths


async def test_one_job_does_not_wake_every_idle_worker(
    app: Forge, database_url: str, ledger: Ledger
) -> None:
    """Fault 37: counted by PostgreSQL."""
    await ledger.connection.execute("create extension pg_stat_statements")
    async with _idle_workers(database_url):
        await until(lambda: _are_quiet(ledger), 90, "the workers have nothing to ask any more")

        await ledger.connection.execute("select pg_stat_statements_reset()")
        job = await app.dispatch(plain)
        await ledger.until_status(job.id, "completed")
        await _everybody_beats(ledger)
        asked = await ledger.connection.fetchval(QUESTIONS)

    print(f"{IDLE_WORKERS} idle workers asked {asked} questions for one job")
    assert 1 <= asked <= MOST_QUESTIONS


@asynccontextmanager
async def _idle_workers(database_url: str) -> AsyncIterator[None]:
    settings = {"idle_poll_interval": "1h", "heartbeat_interval": "1s", "dead_after": "20s"}
    apps = [Forge(Config(worker=settings), database_url=database_url) for _ in range(IDLE_WORKERS)]
    for app in apps:
        app.register(plain)
    workers = [Worker(app) for app in apps]
    running = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        for worker in workers:
            await asyncio.wait_for(worker.started.wait(), 60)
        yield
    finally:
        for worker in workers:
            worker.drain()
        await asyncio.gather(*running)
        for app in apps:
            await app.close()


async def _are_quiet(ledger: Ledger) -> bool:
    """Nobody asks for work while everybody's heart beats."""
    await ledger.connection.execute("select pg_stat_statements_reset()")
    await _everybody_beats(ledger)
    return await ledger.connection.fetchval(QUESTIONS) == 0


async def _everybody_beats(ledger: Ledger) -> None:
    now = await ledger.connection.fetchval("select now()")

    async def have_beaten() -> bool:
        later = "select count(*) from forge_workers where last_heartbeat > $1"
        return await ledger.connection.fetchval(later, now) == IDLE_WORKERS

    await until(have_beaten, 60, "every worker was heard of")
