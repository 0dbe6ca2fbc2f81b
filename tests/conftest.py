"""One PostgreSQL server per test process, and one database per test."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from hypothesis import HealthCheck, settings

from forge.store.connection.database import Database
from forge.store.embedded import Binaries, Cluster
from tests.skips import judged
from tests.template import empty_database, template_database

# fsync protects against power loss, which no test causes.
SETTINGS = {
    "fsync": "off",
    "max_connections": "300",
    "shared_preload_libraries": "pg_stat_statements",
}

# Apps and workers on the test's database.
pytest_plugins = ["tests.apps"]

# As on a laptop: unbuffered output would hide missing flushes and broken pipes.
os.environ.pop("PYTHONUNBUFFERED", None)

MEMORY = Path("/dev/shm")
ENOUGH_MEMORY = 8 * 2**30
# A slow example means a busy machine, not wrong code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return judged((yield))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The PostgreSQL server for the tests of this process."""
    folder = os.environ.get("FORGE_TEST_POSTGRES_BIN")
    binaries = Binaries.from_folder(Path(folder)) if folder else Binaries.from_wheel()
    with _in_memory() as memory:
        place = memory or tmp_path_factory.mktemp("postgres")
        cluster = Cluster(place / "data", binaries, SETTINGS)
        cluster.init()
        cluster.start()
        yield cluster
        cluster.stop("immediate")


@contextmanager
def _in_memory() -> Iterator[Path | None]:
    """Create a folder in memory if there is enough: each test creates and drops a database."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ENOUGH_MEMORY:
        yield None
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="forge-tests-") as folder:
        os.chmod(folder, 0o755)  # the server may run as another user
        yield Path(folder)


@pytest.fixture(scope="session")
def template(server: Cluster) -> str:
    """The name of a migrated database to copy."""
    return template_database(server)


@pytest.fixture(scope="session")
def maintenance(server: Cluster) -> Iterator["psycopg.Connection[Any]"]:
    """The connection that creates and drops databases."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        yield connection


@pytest.fixture
def database_url(
    server: Cluster, template: str, maintenance: "psycopg.Connection[Any]"
) -> Iterator[str]:
    """A fresh, migrated database."""
    name = f"test_{uuid4().hex[:12]}"
    # File copy is three times as fast as the WAL log, and the template is idle.
    maintenance.execute(f"create database {name} template {template} strategy file_copy".encode())
    yield server.url(name)
    maintenance.execute(f"drop database {name} with (force)".encode())


@pytest.fixture
def empty_url(server: Cluster) -> Iterator[str]:
    """A database without any of Forge's tables."""
    with empty_database(server) as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A fresh, migrated database, opened."""
    opened = Database(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def psql(database_url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A superuser connection to the same database, without Forge's settings, as in psql."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()
