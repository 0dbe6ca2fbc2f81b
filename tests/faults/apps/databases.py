"""Handlers that run their own statements, each with another database driver."""

from __future__ import annotations

import os
from typing import Any

from forge import JobContext, job
from tests.faults.apps.handlers import GATE_TIMEOUT, open_for
from tests.faults.apps.reporting import recorded
from tests.faults.kit.process import until, wait_until

HANG = "select pg_sleep(600)"


@job(max_attempts=1)
async def by_pool(ctx: JobContext, input: dict[str, Any]) -> int:
    with recorded(ctx):
        await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
        await ctx.db.execute(_sql(ctx, input))
    return os.getpid()


@job(max_attempts=1)
async def holding(ctx: JobContext, input: dict[str, Any]) -> int:
    """Hold a connection while waiting at the gate."""
    with recorded(ctx):
        async with ctx.db.acquire() as connection, connection.transaction():
            await connection.execute("select 1")
            await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
            await connection.execute(_sql(ctx, input))
    return os.getpid()


@job(max_attempts=1)
async def by_asyncpg(ctx: JobContext, input: dict[str, Any]) -> int:
    import asyncpg

    with recorded(ctx):
        await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
        connection = await asyncpg.connect(input["url"])
        await connection.execute(_sql(ctx, input))
        await connection.close()
    return os.getpid()


@job(max_attempts=1)
async def by_async_psycopg(ctx: JobContext, input: dict[str, Any]) -> int:
    import psycopg

    with recorded(ctx):
        await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
        async with await psycopg.AsyncConnection.connect(input["url"]) as connection:
            await connection.execute(_sql(ctx, input))
    return os.getpid()


@job(max_attempts=1)
def by_psycopg_in_thread(ctx: JobContext, input: dict[str, Any]) -> int:
    with recorded(ctx):
        wait_until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
        _by_psycopg(input["url"], _sql(ctx, input))
    return os.getpid()


@job(max_attempts=1, isolation="process")
def by_psycopg_in_process(ctx: JobContext, input: dict[str, Any]) -> int:
    with recorded(ctx):
        wait_until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
        _by_psycopg(input["url"], _sql(ctx, input))
    return os.getpid()


@job(max_attempts=1)
def by_sqlalchemy(ctx: JobContext, input: dict[str, Any]) -> int:
    import sqlalchemy

    url = input["url"].replace("postgresql://", "postgresql+psycopg://")
    with recorded(ctx):
        wait_until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
        with sqlalchemy.create_engine(url).begin() as connection:
            connection.execute(sqlalchemy.text(_sql(ctx, input)))
    return os.getpid()


@job(max_attempts=1)
async def in_its_transaction(ctx: JobContext, input: dict[str, Any]) -> int:
    with recorded(ctx):
        await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
        # Passed here instead of returned: it is stored by the transaction that completes the job.
        async with ctx.complete_in_transaction(os.getpid()) as connection:
            await connection.execute(_sql(ctx, input))
    return os.getpid()


def _by_psycopg(url: str, sql: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(sql)


def _sql(ctx: JobContext, input: dict[str, Any]) -> str:
    return HANG if input["hangs"] and ctx.lease == 1 else "select 1"


DRIVERS = (
    by_pool,
    holding,
    by_asyncpg,
    by_async_psycopg,
    by_psycopg_in_thread,
    by_psycopg_in_process,
    by_sqlalchemy,
    in_its_transaction,
)
