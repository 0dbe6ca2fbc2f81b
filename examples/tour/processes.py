"""The processes of the tour: workers and a server, which stop together."""

import asyncio
import secrets
from collections.abc import Awaitable
from types import TracebackType
from typing import Any

from forge import ForgeError
from forge.cli.processes.child_process import ForgeProcess
from forge.cli.processes.server import DEV_TOKEN
from forge.cli.processes.serving import CannotListen, address_of, listen
from forge.cli.tokens import PREFIX

APP = "examples.tour.app:app"
# The bakery fails on purpose, and the dashboard shows each error.
QUIET = ("--log-level", "off")
LOOPBACK, PORT = "127.0.0.1", 8080


class Processes:
    """Child processes, which end with the block."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Future[int], ForgeProcess] = {}

    async def start_workers(self, count: int) -> None:
        for _ in range(count):
            await self._start("worker", APP, "--max-concurrent", "50", *QUIET)

    async def start_server(self) -> str:
        """Start a server on loopback; return a link that signs in to its dashboard."""
        try:
            listener = listen(LOOPBACK, PORT)
        except CannotListen:
            listener = listen(LOOPBACK, 0)
        token = PREFIX + secrets.token_urlsafe(32)
        env = {DEV_TOKEN: token, "FORGE_DASHBOARD_LABEL": "tour"}
        with listener:
            number = listener.fileno()
            options: Any = {"sockets": [number], "env": env}
            await self._start("server", APP, "--socket", f"{number}", *QUIET, **options)
            return f"{address_of(listener)}/#token={token}"

    async def while_running(self, work: Awaitable[None]) -> None:
        """Do the work, but raise an error if a process ends first."""
        task = asyncio.ensure_future(work)
        all: set[asyncio.Future[Any]] = {task, *self._running}
        try:
            await asyncio.wait(all, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                code = next(ended.result() for ended in self._running if ended.done())
                raise ForgeError(f"A process exited with code {code}. See its output above.")
            await task
        finally:
            task.cancel()

    async def _start(self, *arguments: str, **options: Any) -> None:
        process = await ForgeProcess.start(arguments, **options)
        self._running[asyncio.ensure_future(process.ended())] = process

    async def __aenter__(self) -> "Processes":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._running.values():
            process.stop()
        if self._running:
            await asyncio.wait(self._running)
