"""Forge's own figures: each function measures once, through the public API and a real worker."""

import asyncio
from collections.abc import Awaitable, Callable
from statistics import median, quantiles
from time import perf_counter
from typing import Any, NamedTuple

import asyncpg

from benchmarks.limit import RoundTrip
from benchmarks.reference_table import connected, sql
from benchmarks.worker_process import drained, worker_process
from forge import Config, Forge, JobContext, Worker
from forge.config.settings import DatabaseConfig, WorkerConfig
from forge.jobs.prepare import prepare

INPUT = {"user_id": 42, "template": "welcome"}


class Drained(NamedTuple):
    """A drain: its rate, and the cost per job on the server from dispatch to completion."""

    rate: float
    wal_bytes: float
    commits: float


async def drain(dsn: str, jobs: int, *, slots: int, batch: int) -> Drained:
    """Dispatch many no-op jobs, then let one worker process run them all."""
    app = app_on(dsn)
    async with connected(dsn, 1) as (connection,), app:
        await _empty(connection)
        wal, commits = await _spent(connection)
        await app.dispatch_many("no_op", [INPUT] * jobs)
        await connection.execute(sql("forge_vacuum"))
        await connection.execute(sql("checkpoint"))
        async with worker_process(dsn, slots=slots, batch=batch):
            await drained(connection)
            span = await connection.fetchrow(sql("forge_span"), "no_op")
        if span["jobs"] != jobs:
            raise RuntimeError(f"{span['jobs']} of {jobs} jobs completed, so the figure is invalid")
        wal_after, commits_after = await _spent(connection)
    return Drained(
        jobs / span["seconds"], (wal_after - wal) / jobs, (commits_after - commits) / jobs
    )


async def bulk_rate(dsn: str, rows: int) -> float:
    """Return the jobs per second of one dispatch_many of plain dicts."""
    app = app_on(dsn)
    inputs = [dict(INPUT) for _ in range(rows)]
    async with connected(dsn, 1) as (connection,), app:
        await _empty(connection)
        started = perf_counter()
        await app.dispatch_many("no_op", inputs)
        return rows / (perf_counter() - started)


async def single_rate(dsn: str, callers: int, seconds: float) -> float:
    """Return the dispatches per second of concurrent callers, one job per call."""
    return (await _dispatched(dsn, callers, seconds, _dispatch)).rate


async def single_latency(dsn: str, callers: int, seconds: float, *, batched: bool = True) -> float:
    """Return the median milliseconds of a dispatch, or of one with an insert of its own."""
    call = _dispatch if batched else _insert_alone
    return (await _dispatched(dsn, callers, seconds, call)).p50


class Dispatches(NamedTuple):
    """Calls per second, and their median in milliseconds."""

    rate: float
    p50: float


async def _dispatched(
    dsn: str, callers: int, seconds: float, call: Callable[[Forge], Awaitable[object]]
) -> Dispatches:
    app = app_on(dsn, pool_size=min(callers, 20))
    async with connected(dsn, 1) as (connection,), app:
        await _empty(connection)
        await asyncio.gather(*(call(app) for _ in range(callers)))
        before = await connection.fetchval(sql("forge_count"))
        took: list[float] = []
        started = perf_counter()
        await asyncio.gather(
            *(_call_until(app, call, started + seconds, took) for _ in range(callers))
        )
        elapsed = perf_counter() - started
        new = await connection.fetchval(sql("forge_count")) - before
    if new != len(took):
        raise RuntimeError(f"{len(took)} calls and {new} new jobs, so the figure is invalid")
    return Dispatches(len(took) / elapsed, median(took) * 1000)


async def _call_until(
    app: Forge, call: Callable[[Forge], Awaitable[object]], deadline: float, took: list[float]
) -> None:
    began = perf_counter()
    while began < deadline:
        await call(app)
        ended = perf_counter()
        took.append(ended - began)
        began = ended


async def _dispatch(app: Forge) -> None:
    await app.dispatch("no_op", INPUT)


async def _insert_alone(app: Forge) -> None:
    """Dispatch without the batcher: one statement and one commit per call."""
    session = await app.session()
    job = prepare(await app.catalog.find("no_op"), INPUT, {})
    await (await session.database()).run(job.statement())
    session.wake()


async def latency(dsn: str, samples: int) -> RoundTrip:
    """Return the time from just before a dispatch to the first line of its handler.

    As in the baseline, everything runs in one process and the next dispatch follows immediately.
    """
    app = Forge(Config(database=DatabaseConfig(url=dsn)))
    reached = asyncio.Event()
    milliseconds: list[float] = []

    @app.job
    async def stamp(ctx: JobContext, input: dict[str, float]) -> None:
        milliseconds.append((perf_counter() - input["at"]) * 1000)
        reached.set()

    async with connected(dsn, 1) as (connection,), app:
        await _empty(connection)
        worker = Worker(app)
        running = asyncio.create_task(worker.run())
        await worker.started.wait()
        for _ in range(samples + samples // 10):
            reached.clear()
            await app.dispatch(stamp, {"at": perf_counter()})
            await reached.wait()
        worker.drain()
        await running
    cuts = quantiles(milliseconds[samples // 10 :], n=100)
    return RoundTrip(p50=cuts[49], p99=cuts[98])


def app_on(dsn: str, *, pool_size: int = 10, worker: WorkerConfig | None = None) -> Forge:
    """Return an app with the benchmark's jobs on this database."""
    from benchmarks.jobs_app import no_op

    database = DatabaseConfig(url=dsn, pool_size=pool_size)
    app = Forge(Config(database=database, worker=worker or WorkerConfig()))
    app.register(no_op)
    return app


async def _empty(connection: "asyncpg.Connection[Any]") -> None:
    await connection.execute(sql("forge_empty"))
    await connection.execute(sql("checkpoint"))


async def _spent(connection: "asyncpg.Connection[Any]") -> tuple[int, int]:
    return await connection.fetchval(sql("wal_written")), await connection.fetchval(sql("commits"))
