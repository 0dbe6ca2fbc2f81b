"""The migrated database that every test's own is a copy of."""

import asyncio

import asyncpg

from forge.store.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate

NAME = "forge_template"


def template_database(server: Cluster) -> str:
    asyncio.run(_make(server))
    return NAME


async def _make(server: Cluster) -> None:
    admin = await asyncpg.connect(server.url("postgres"))
    await admin.execute(f"create database {NAME}")
    await admin.close()
    database = Database(server.url(NAME))
    await migrate(database)
    await database.close()
