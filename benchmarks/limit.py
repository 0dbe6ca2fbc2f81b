"""The fixed baseline: what raw SQL reaches on this machine and this server.

Every function measures once on its own new table and drops it. You can repeat them and interleave
them with other measurements.
"""

import asyncio
from statistics import quantiles
from time import perf_counter
from typing import NamedTuple

from uuid_utils.compat import uuid7

from benchmarks.notified_trip import NotifiedTrip
from benchmarks.reference_table import (
    INPUT,
    JOB_TYPE,
    OUTPUT,
    TABLE,
    Statement,
    connected,
    copy,
    new_rows,
    reference_table,
    sql,
)


class RoundTrip(NamedTuple):
    """The time from dispatch to claim, in milliseconds."""

    p50: float
    p99: float


async def warm_up(dsn: str) -> None:
    """Make the server create its WAL files, which slows down the first runs on a new server."""
    await drain(dsn, jobs=100_000, batch=500, connections=2)


async def drain(dsn: str, jobs: int, batch: int, connections: int) -> float:
    """Return the jobs per second that are claimed and finished without running anything."""
    return jobs / (await _drained(dsn, jobs, batch, connections)).seconds


async def wal_per_drained_job(
    dsn: str, batch: int, jobs: int = 20_000, connections: int = 2
) -> float:
    """Return the bytes of write-ahead log that claiming and finishing one job takes."""
    return (await _drained(dsn, jobs, batch, connections)).wal_bytes / jobs


async def copy_rate(dsn: str, rows: int) -> float:
    """Return the rows per second of one COPY."""
    records = new_rows(rows)
    async with reference_table(dsn) as connection:
        started = perf_counter()
        await copy(connection, records)
        return rows / (perf_counter() - started)


async def insert_rate(dsn: str, connections: int, seconds: float, *, notify: bool = False) -> float:
    """Return the one-row transactions per second, with or without a notification in each."""
    statement = sql("insert_and_notify" if notify else "insert")
    async with reference_table(dsn), connected(dsn, connections) as inserters:
        inserts = [await inserter.prepare(statement) for inserter in inserters]
        started = perf_counter()
        counts = await asyncio.gather(
            *(_insert_until(insert, started + seconds) for insert in inserts)
        )
        return sum(counts) / (perf_counter() - started)


async def notify_round_trip(dsn: str, samples: int) -> RoundTrip:
    """Return the time from just before a dispatch until its listener has claimed the job."""
    async with reference_table(dsn), connected(dsn, 3) as (dispatcher, listener, claimer):
        trip = await NotifiedTrip.prepared(dispatcher, listener, claimer)
        for _ in range(samples // 10):
            await trip.milliseconds()
        cuts = quantiles([await trip.milliseconds() for _ in range(samples)], n=100)
        return RoundTrip(p50=cuts[49], p99=cuts[98])


class _Drained(NamedTuple):
    seconds: float
    wal_bytes: int


async def _drained(dsn: str, jobs: int, batch: int, connections: int) -> _Drained:
    async with reference_table(dsn) as connection, connected(dsn, connections) as workers:
        await copy(connection, new_rows(jobs))
        await connection.execute(sql("vacuum"))
        claims = [await worker.prepare(sql("claim", batch=batch)) for worker in workers]
        finishes = [await worker.prepare(sql("finish")) for worker in workers]
        wal_before = await connection.fetchval(sql("wal_written"))
        started = perf_counter()
        await asyncio.gather(*map(_drain_all, claims, finishes))
        seconds = perf_counter() - started
        wal_bytes = await connection.fetchval(sql("wal_written")) - wal_before
        if unfinished := await connection.fetchval(sql("count_unfinished")):
            raise RuntimeError(
                f"{unfinished} of {jobs} jobs were not drained, so the figure is invalid; "
                f"make sure that nothing else uses the table {TABLE} and measure again"
            )
        return _Drained(seconds, wal_bytes)


async def _drain_all(claim: Statement, finish: Statement) -> None:
    worker = uuid7()
    while claimed := await claim.fetch(worker):
        await finish.fetch([job["id"] for job in claimed], [OUTPUT] * len(claimed))


async def _insert_until(insert: Statement, deadline: float) -> int:
    count = 0
    while perf_counter() < deadline:
        await insert.fetch(uuid7(), JOB_TYPE, INPUT)
        count += 1
    return count


if __name__ == "__main__":
    from benchmarks.limit_report import main

    main()
