"""An app without a configured database shows the address of its embedded PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import psycopg
import pytest

from forge import Config, Forge


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[Forge]:
    app = Forge(Config(embedded={"folder": tmp_path / ".forge"}))
    yield app
    await app.close()


async def test_the_address_of_the_embedded_server_is_known_while_the_app_is_open(
    embedded: Forge,
) -> None:
    assert embedded.database_url is None

    async with embedded:
        assert embedded.database_url is not None
        connection = await asyncpg.connect(embedded.database_url)
        assert await connection.fetchval("select count(*) from forge_jobs") == 0
        await connection.close()

    assert embedded.database_url is None


def test_the_address_is_known_while_app_sync_is_open(tmp_path: Path) -> None:
    app = Forge(Config(embedded={"folder": tmp_path / ".forge"}))
    app.sync.dead_letters.list()

    assert app.database_url is not None
    assert app.sync.database_url == app.database_url
    with psycopg.connect(app.database_url) as connection:
        assert connection.execute("select count(*) from forge_jobs").fetchone() == (0,)
    app.sync.close()

    assert app.database_url is None


def test_a_configured_address_is_known_immediately(database_url: str) -> None:
    app = Forge(Config(), database_url=database_url)

    assert app.database_url == app.sync.database_url == database_url
