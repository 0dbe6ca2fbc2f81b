"""No stampedes: retries are spread out, and one job wakes few of the idle workers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from forge import Config, Forge, JobHandle, Worker
from tests.cli.command import Project
from tests.faults.apps.handlers import failing
from tests.faults.apps.plain import plain
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.process import until
from tests.faults.kit.worker_processes import Workers

FAILURES = 1000
DELAYS = """
    select extract(epoch from job.scheduled_at - attempt.ended_at)::float8 as delay
    from forge_jobs as job
    join forge_attempts as attempt on attempt.job_id = job.id and attempt.lease = 1
"""
IDLE_WORKERS = 50
# More than are woken for one job, so that waking all of them would be visible.
PROCESSES = 6
# One job wakes three workers. Each tries the last used lane and searches once; the one that runs
# the job searches again when its slot is free and when the outcome is written.
MAX_QUERIES = 10
CLAIM_QUERIES = """
    select coalesce(sum(calls), 0)::integer
    from pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database())
      and (query like '%with recursive lanes%' or query like '%lease = lease + 1%')
"""


async def test_retries_of_simultaneous_failures_are_spread_out(
    app: Forge, workers: Workers, ledger: Ledger
) -> None:
    """Fault 35: each tenth of the backoff range gets about a tenth of the retries."""
    await app.dispatch_many(failing, ({} for _ in range(FAILURES)))
    await workers.start(max_concurrent=100, batch_size=100)

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
    """Fault 37: queries are counted by PostgreSQL."""
    await ledger.connection.execute("create extension pg_stat_statements")
    async with _idle_workers(database_url):
        queries = await _claim_queries_for_one_job(
            lambda: app.dispatch(plain), ledger, IDLE_WORKERS
        )

    print(f"{IDLE_WORKERS} idle workers sent {queries} claim queries for one job")
    assert 1 <= queries <= MAX_QUERIES


async def test_one_job_does_not_wake_every_process(
    app: Forge, database_url: str, ledger: Ledger
) -> None:
    """Fault 37 with `forge worker --processes`; idle processes send no claim queries."""
    await ledger.connection.execute("create extension pg_stat_statements")
    project = Project(database_url)
    project.env |= {
        "FORGE_WORKER_IDLE_POLL_INTERVAL": "1h",
        "FORGE_WORKER_HEARTBEAT_INTERVAL": "1s",
        "FORGE_WORKER_DEAD_AFTER": "20s",
        "FORGE_WORKER_METRICS_PORT": "off",
    }
    with project.start("worker", "shop:app", "--processes", str(PROCESSES)) as parent:
        queries = await _claim_queries_for_one_job(
            lambda: app.dispatch("greet", {"name": "Ada"}), ledger, PROCESSES
        )
        parent.sigterm()
        await until(lambda: not parent.is_alive, 30, "all have ended")

    print(f"{PROCESSES} idle processes sent {queries} claim queries for one job")
    assert 1 <= queries <= MAX_QUERIES


async def _claim_queries_for_one_job(
    dispatch: Callable[[], Awaitable[JobHandle]], ledger: Ledger, workers: int
) -> int:
    """The number of claim queries that idle workers send for one job."""
    await until(lambda: _are_quiet(ledger, workers), 90, "the workers send no more claim queries")
    await ledger.connection.execute("select pg_stat_statements_reset()")
    job = await dispatch()
    await ledger.until_status(job.id, "completed")
    await _until_all_beat(ledger, workers)
    queries: int = await ledger.connection.fetchval(CLAIM_QUERIES)
    return queries


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


async def _are_quiet(ledger: Ledger, workers: int) -> bool:
    """Whether no worker sends claim queries for two rounds of heartbeats.

    Two rounds: a worker that has just started sends its first heartbeat before its first search.
    """
    await ledger.connection.execute("select pg_stat_statements_reset()")
    for _ in range(2):
        await _until_all_beat(ledger, workers)
    return await ledger.connection.fetchval(CLAIM_QUERIES) == 0


async def _until_all_beat(ledger: Ledger, workers: int) -> None:
    now = await ledger.connection.fetchval("select now()")

    async def have_beaten() -> bool:
        later = "select count(*) from forge_workers where last_heartbeat > $1"
        return await ledger.connection.fetchval(later, now) == workers

    await until(have_beaten, 60, "every worker has sent a heartbeat")
