"""The cost of a transaction with an old snapshot, which keeps dead rows from being removed."""

from benchmarks.engine import INPUT, app_on
from benchmarks.reference_table import connected, sql
from benchmarks.worker_process import drained, worker_process


async def rate_under_snapshot(dsn: str, churn: int, jobs: int, *, held: bool) -> float:
    """Return the drain rate after `churn` jobs, with or without an old snapshot."""
    app = app_on(dsn)
    async with connected(dsn, 2) as (connection, holder), app:
        await connection.execute(sql("forge_empty"))
        await connection.execute(sql("checkpoint"))
        async with worker_process(dsn, slots=100, batch=100):
            snapshot = holder.transaction(isolation="repeatable_read")
            if held:
                await snapshot.start()
                await holder.fetchval(sql("forge_is_busy"))
            await app.dispatch_many("no_op", [INPUT] * churn)
            await drained(connection)
            await app.dispatch_many("no_op", [INPUT] * jobs, tags=["measured"])
            await drained(connection)
            seconds = await connection.fetchval(sql("forge_tagged_span"))
            if held:
                await snapshot.rollback()
    return jobs / float(seconds)
