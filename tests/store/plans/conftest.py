"""A connection that records the plan of each statement."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from forge.store.connection.database import Database
from tests.store.plans.crowd import explaining


@pytest.fixture
async def explain(database: Database) -> AsyncIterator["asyncpg.Connection[Any]"]:
    connection = await explaining(database)
    yield connection
    await connection.close()
