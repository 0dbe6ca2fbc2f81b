"""Test settings for the app of an example."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from forge import Config, Forge
from tests.apps import FAST


@asynccontextmanager
async def on_database(app: Forge, url: str, **sections: Any) -> AsyncIterator[None]:
    """Configure an app for a test database and short worker intervals, for this block."""
    config, own_url = app.config, app.database_url
    app.configure(Config(worker=FAST, **sections), database_url=url)
    try:
        yield
    finally:
        await app.close()
        app.configure(config, database_url=own_url)
