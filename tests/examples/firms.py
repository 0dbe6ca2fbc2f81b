"""The firms example on a test database: the mail provider, the HTTP API, and a worker."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from examples.firm.api_client import ApiClients
from examples.firm.app import app
from examples.firm.connections import connect
from examples.firm.local_provider import Provider
from examples.firm.people import ACCOUNTANTS, LAWYERS, tokens
from examples.serving import serving

from forge.http import create_app
from tests.apps import Work, make_app, work
from tests.examples.settings import on_database

__all__ = ["make_app", "work"]

SCHEMA = Path(__file__).parents[2] / "examples" / "firm" / "schema.sql"


class Firms:
    """The API clients of all users, and a mailbox per firm."""

    def __init__(
        self, clients: ApiClients, provider: Provider, psql: "asyncpg.Connection[Any]"
    ) -> None:
        self.clients = clients
        self.provider = provider
        self.psql = psql
        self.mailbox = self.theirs = 0

    async def connect_mailboxes(self) -> None:
        self.mailbox = await self.connect(LAWYERS, self.provider.open())
        self.theirs = await self.connect(ACCOUNTANTS, self.provider.open())

    async def connect(self, tenant_id: int, token: str) -> int:
        return await connect(self.psql, tenant_id, self.provider.address, token)

    async def attempts(self, job_id: str) -> list[Any]:
        found = await self.clients.max.get(f"/_api/jobs/{job_id}/attempts")
        return list(found["items"])

    async def count(self, table: str) -> int:
        return int(await self.psql.fetchval(f"select count(*) from {table}"))


@pytest.fixture
async def firms(database_url: str, psql: "asyncpg.Connection[Any]") -> AsyncIterator[Firms]:
    """The application on the test's database, with its API on a loopback port."""
    auth = {"secret": 32 * "s", "tokens": tokens()}
    await psql.execute(SCHEMA.read_text())
    provider = Provider()
    async with (
        on_database(app, database_url, auth=auth),
        serving(provider.asgi) as provider.address,
        serving(create_app(app)) as address,
        httpx.AsyncClient(base_url=address, timeout=30) as http,
    ):
        made = Firms(ApiClients.at(http), provider, psql)
        await made.connect_mailboxes()
        yield made


@pytest.fixture
async def at_work(firms: Firms, work: Work) -> Firms:
    """The application with a running worker."""
    await work(app)
    return firms
