"""Databases for tests: the migrated one that most copy, and empty ones."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import asyncpg
import psycopg

from forge.core.job_type import JobType
from forge.store import schedule_types
from forge.store.connection.database import Database
from forge.store.embedded import Cluster
from forge.store.migrate import migrate

NAME = "forge_template"
# Schedule types that tests use without their code, as if a worker had registered them.
SCHEDULE_TYPES = ("a", "b", "fetch", "fetch_feed", "foreign", "gated_run", "gone", "hourly", "kept")
SCHEDULE_TYPES += ("linger", "nightly", "once", "other", "pull", "recurring", "renew_websub")
SCHEDULE_TYPES += ("report", "slow", "tick")


def template_database(server: Cluster) -> str:
    """Create the migrated template database, and return its name."""
    asyncio.run(_make(server))
    return NAME


@contextmanager
def empty_database(server: Cluster) -> Iterator[str]:
    """Create a database without Forge's tables for the block, and yield its URL."""
    name = f"empty_{uuid4().hex[:12]}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        yield server.url(name)
        admin.execute(f"drop database {name} with (force)".encode())


async def _make(server: Cluster) -> None:
    admin = await asyncpg.connect(server.url("postgres"))
    await admin.execute(f"create database {NAME}")
    await admin.close()
    database = Database(server.url(NAME))
    await migrate(database)
    await database.run(schedule_types.register([JobType(name) for name in SCHEDULE_TYPES]))
    await database.close()
