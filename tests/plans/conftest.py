"""A connection that is told the plan of all it runs."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from forge.store.database import Database
from tests.plans.crowd import explaining


@pytest.fixture
async def explain(database: Database) -> AsyncIterator["asyncpg.Connection[Any]"]:
    connection = await explaining(database)
    yield connection
    await connection.close()
