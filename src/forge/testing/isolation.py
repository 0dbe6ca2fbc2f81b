"""An app with the settings and the database of one test, and its own ones again afterwards."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

from forge.app import Forge
from forge.config.settings import Config
from forge.config.transport import TransportConfig
from forge.worker.worker import Worker

# How long a worker may take to end, in seconds.
WORKER_TIMEOUT = 30
URL_VARIABLE = "FORGE_DATABASE_URL"
# A worker in a test: it finds work soon, opens no port, and is not declared dead on a busy machine.
WORKER: dict[str, Any] = {
    "id": None,
    "poll_interval": timedelta(milliseconds=20),
    "heartbeat_interval": timedelta(seconds=1),
    "dead_after": timedelta(seconds=30),
    "shutdown_grace": timedelta(seconds=5),
    "metrics_port": None,
    "processes": 1,
}


@contextmanager
def isolated(app: Forge, url: str) -> Iterator[Forge]:
    """Give an app the database at this URL for the block, in which the app must be closed.

    Processes that are started meanwhile find it in FORGE_DATABASE_URL.
    """
    config, own_url = app.config, app.database_url
    inherited = os.environ.get(URL_VARIABLE)
    app.configure(_for_tests(config, url), database_url=url)
    os.environ[URL_VARIABLE] = url
    try:
        yield app
    finally:
        if inherited is None:
            os.environ.pop(URL_VARIABLE, None)
        else:
            os.environ[URL_VARIABLE] = inherited
        app.configure(config, database_url=own_url)


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[None]:
    """Run a worker in this event loop during the block, and let it end its jobs."""
    task = asyncio.ensure_future(worker.run())
    started = asyncio.ensure_future(worker.started.wait())
    await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
    started.cancel()
    if task.done():
        await task  # raises what kept it from starting
    try:
        yield
    finally:
        worker.drain()
        await asyncio.wait_for(task, WORKER_TIMEOUT)


def _for_tests(config: Config, url: str) -> Config:
    database = config.database.model_copy(update={"url": url, "pooler": False})
    worker = config.worker.model_copy(update=WORKER)
    return config.model_copy(
        update={"database": database, "worker": worker, "transport": TransportConfig()}
    )
