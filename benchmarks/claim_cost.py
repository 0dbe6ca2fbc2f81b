"""The cost of a survey and a batch claim, in time and buffers."""

import json
from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from forge.store.statement import Statement

WORKER = UUID(int=7)
BATCH = 10
# About a fifth of a second, so that one burst of background writes does not dominate the figure.
TRIES = 400


class Cost(NamedTuple):
    """The cost of one survey and one claim."""

    milliseconds: float
    buffers: float


async def cost_of(
    connection: "asyncpg.Connection[Any]", statements: Sequence[Statement[Any]]
) -> Cost:
    """Run statements that end with a batch claim repeatedly, and roll each run back."""
    seconds = [await _once(connection, statements) for _ in range(TRIES)]
    buffers = [await _buffers(connection, statement) for statement in statements]
    return Cost(median(seconds[TRIES // 4 :]) * 1000, sum(buffers))


async def _once(
    connection: "asyncpg.Connection[Any]", statements: Sequence[Statement[Any]]
) -> float:
    transaction = connection.transaction()
    await transaction.start()
    try:
        started = perf_counter()
        for statement in statements:
            found = await connection.fetch(statement.sql, *statement.args)
        took = perf_counter() - started
    finally:
        await transaction.rollback()
    if len(found) != BATCH:
        raise RuntimeError(
            f"claimed {len(found)} jobs instead of {BATCH}, so the figure is invalid"
        )
    return took


async def _buffers(connection: "asyncpg.Connection[Any]", statement: Statement[Any]) -> float:
    transaction = connection.transaction()
    await transaction.start()
    try:
        explained = await connection.fetchval(
            f"explain (analyze, buffers, format json) {statement.sql}", *statement.args
        )
    finally:
        await transaction.rollback()
    plan = json.loads(explained)[0]["Plan"]
    return float(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
