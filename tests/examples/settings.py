"""The settings of a test for an example's own app."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from forge import Config, Forge
from tests.flow.engine.conftest import FAST


@asynccontextmanager
async def on_database(app: Forge, url: str, **sections: Any) -> AsyncIterator[None]:
    """Have an app on a test's database, with a worker that is quick, for as long as this lasts."""
    config, own_url = app.config, app.database_url
    app.configure(Config(worker=FAST, **sections), database_url=url)
    try:
        yield
    finally:
        await app.close()
        app.configure(config, database_url=own_url)
