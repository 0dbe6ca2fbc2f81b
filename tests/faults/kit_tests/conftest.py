"""A server, a direct connection to it, and one through the proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from forge.store.embedded import Cluster
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.server import running_server


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    with running_server() as server:
        yield server


@pytest.fixture
async def direct(server: Cluster) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(server.url(tcp=True))
    await connection.execute("create table letters (id serial primary key, word text unique)")
    yield connection
    await connection.execute("drop table letters")
    await connection.close()


@pytest.fixture
async def proxy(server: Cluster) -> AsyncIterator[Proxy]:
    async with await Proxy.open(server.url(tcp=True), seed=7) as proxy:
        yield proxy


@pytest.fixture
async def client(direct: object, proxy: Proxy) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(proxy.url())
    yield connection
    connection.terminate()
