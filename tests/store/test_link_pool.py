"""The app's own connections: none is left open when the app is closed."""

import asyncio
from typing import Any

import asyncpg
import pytest

from forge.core.errors import DatabaseUnavailable
from forge.store.connection.database import Database
from forge.store.statement import Statement, nothing
from tests.faults.kit.process import until

OURS = """
    select count(*) from pg_stat_activity
    where datname = current_database() and application_name = 'forge' and query like $1
"""


async def test_a_connection_in_use_is_closed_when_it_is_given_back(
    database_url: str, psql: "asyncpg.Connection[Any]"
) -> None:
    database = Database(database_url)
    running = asyncio.create_task(database.run(Statement("select pg_sleep(0.5)", (), nothing)))
    await until(lambda: psql.fetchval(OURS, "%pg_sleep(0.5)%"), 30, "the statement runs")

    await database.close()
    await running

    async def is_gone() -> bool:
        return await psql.fetchval(OURS, "%") == 0

    await until(is_gone, 30, "no connection is left")


async def test_closing_the_app_fails_callers_that_wait_for_a_connection(
    database_url: str, psql: "asyncpg.Connection[Any]"
) -> None:
    database = Database(database_url, pool_size=1)
    async with database.acquire():
        waiting = asyncio.create_task(database.run(Statement("select 1", (), nothing)))
        await until(lambda: database._links._waiting, 30, "it waits")

        await database.close()

        with pytest.raises(DatabaseUnavailable, match="closed"):
            await waiting
