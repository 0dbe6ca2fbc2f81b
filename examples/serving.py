"""Serve an ASGI app on a local port, in the running event loop."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn


class LoopServer(uvicorn.Server):
    """A server that installs no signal handlers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(asgi: Any) -> AsyncIterator[str]:
    """Serve until the end of the block. Yields the address."""
    options: dict[str, Any] = {"log_level": "warning", "timeout_graceful_shutdown": 2}
    server = LoopServer(uvicorn.Config(asgi, host="127.0.0.1", port=0, lifespan="off", **options))
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            if task.done():
                await task
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task
