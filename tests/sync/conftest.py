"""An app and its `app.sync`."""

from collections.abc import Iterator

import psycopg
import pytest

from forge import Forge, JobContext
from forge.sync.app import SyncForge


@pytest.fixture
def app(database_url: str) -> Iterator[Forge]:
    app = Forge(database_url=database_url)
    app.job(double)
    app.job(broken)
    app.job(name="keyed", idempotent="input.n")(double)
    yield app
    app.sync.close()


@pytest.fixture
def sync(app: Forge) -> SyncForge:
    return app.sync


async def double(ctx: JobContext, input: dict[str, int]) -> int:
    ctx.progress(50, "halfway")
    return input["n"] * 2


async def broken(ctx: JobContext, input: dict[str, int]) -> None:
    raise LookupError("no such thing")


def count(url: str, where: str = "true") -> int:
    with psycopg.connect(url) as conn:
        row = conn.execute(f"select count(*) from forge_jobs where {where}").fetchone()
    assert row is not None
    return int(row[0])
