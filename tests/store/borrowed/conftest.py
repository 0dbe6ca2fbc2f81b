"""An app with a job to dispatch; `psql` is another session, which sees committed rows."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from forge import Forge
from forge.definitions.job import JobDefinition


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Forge]:
    async with Forge(database_url=database_url) as app:
        yield app


@pytest.fixture
def plain(app: Forge) -> JobDefinition[Any, Any]:
    @app.job
    async def plain(ctx: Any, input: dict) -> None: ...

    return plain


async def count(conn: "asyncpg.Connection[Any]") -> int:
    return await conn.fetchval("select count(*) from forge_jobs")
