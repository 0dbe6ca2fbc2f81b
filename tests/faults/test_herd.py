"""Many at once: failures do not come back together, and one job does not wake everybody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from forge import Config, Forge, JobHandle, Worker
from tests.faults.apps.handlers import failing
from tests.faults.apps.plain import plain
from tests.faults.kit.crew import Crew
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.process import until
from tests.flow.command import Project

FAILURES = 1000
DELAYS = """
    select extract(epoch from job.scheduled_at - attempt.ended_at)::float8 as delay
    from forge_jobs as job
    join forge_attempts as attempt on attempt.job_id = job.id and attempt.lease = 1
"""
IDLE_WORKERS = 50
# More than are called for one job, so that it would show if all of them came.
PROCESSES = 6
# For one job three are called; each tries where work was last and looks around once, and whoever
# has run it looks around again when its slot is free and when its end is written.
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
        asked = await _asked_for_one_job(lambda: app.dispatch(plain), ledger, IDLE_WORKERS)

    print(f"{IDLE_WORKERS} idle workers asked {asked} questions for one job")
    assert 1 <= asked <= MOST_QUESTIONS


async def test_one_job_does_not_wake_every_process(
    app: Forge, database_url: str, ledger: Ledger
) -> None:
    """Fault 37 under `forge worker --processes`; idle, none of them asks for work at all."""
    await ledger.connection.execute("create extension pg_stat_statements")
    project = Project(database_url)
    project.env |= {
        "FORGE_WORKER_IDLE_POLL_INTERVAL": "1h",
        "FORGE_WORKER_HEARTBEAT_INTERVAL": "1s",
        "FORGE_WORKER_DEAD_AFTER": "20s",
        "FORGE_WORKER_METRICS_PORT": "off",
    }
    with project.start("worker", "shop:app", "--processes", str(PROCESSES)) as parent:
        asked = await _asked_for_one_job(
            lambda: app.dispatch("greet", {"name": "Ada"}), ledger, PROCESSES
        )
        parent.sigterm()
        await until(lambda: not parent.is_alive, 30, "all have ended")

    print(f"{PROCESSES} idle processes asked {asked} questions for one job")
    assert 1 <= asked <= MOST_QUESTIONS


async def _asked_for_one_job(
    dispatch: Callable[[], Awaitable[JobHandle]], ledger: Ledger, workers: int
) -> int:
    """How often workers that have nothing to do look for work when one job comes."""
    await until(lambda: _are_quiet(ledger, workers), 90, "the workers have nothing to ask any more")
    await ledger.connection.execute("select pg_stat_statements_reset()")
    job = await dispatch()
    await ledger.until_status(job.id, "completed")
    await _everybody_beats(ledger, workers)
    asked: int = await ledger.connection.fetchval(QUESTIONS)
    return asked


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
    """Nobody asks for work while everybody's heart beats.

    Twice: a worker that only now came has been heard of, too, and has yet to look around and to
    be known to the others.
    """
    await ledger.connection.execute("select pg_stat_statements_reset()")
    for _ in range(2):
        await _everybody_beats(ledger, workers)
    return await ledger.connection.fetchval(QUESTIONS) == 0


async def _everybody_beats(ledger: Ledger, workers: int) -> None:
    now = await ledger.connection.fetchval("select now()")

    async def have_beaten() -> bool:
        later = "select count(*) from forge_workers where last_heartbeat > $1"
        return await ledger.connection.fetchval(later, now) == workers

    await until(have_beaten, 60, "every worker was heard of")
