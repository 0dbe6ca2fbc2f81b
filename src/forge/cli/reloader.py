"""Reloading: a worker process that is drained and started again when sources change."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
from watchfiles import Change, DefaultFilter, awatch

from forge.cli.offspring import WorkerProcess
from forge.config import Config
from forge.config_source import FILE_NAME
from forge.store.embedded import SharedServer, open_shared

# What runs when the code changes has this long to end before it is given back.
PATIENCE = 3.0


class Reloader:
    """Runs one worker at a time, each with the code as it then is."""

    def __init__(self, arguments: Sequence[str], folders: Sequence[Path], config: Config) -> None:
        self._arguments = arguments
        self._folders = folders
        self._config = config
        self._worker: WorkerProcess | None = None
        self._server: SharedServer | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Start the worker, and anew at each change, until told to stop."""
        changes = awatch(
            *self._folders,
            watch_filter=SourceFilter(),
            stop_event=self._stopping,
            ignore_permission_denied=True,
        )
        running = asyncio.ensure_future(self._run_once())
        async for changed in changes:
            names = ", ".join(sorted({Path(path).name for _, path in changed}))
            click.echo(f"{names} changed: starting again", err=True)
            await self._hold_server()
            await self._end(running)
            running = asyncio.ensure_future(self._run_once())
        await running
        if self._server is not None:
            await asyncio.to_thread(self._server.close)

    def stop(self) -> None:
        """Let the worker finish; the second time make it let go."""
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()

    async def _run_once(self) -> None:
        worker = self._worker = await WorkerProcess.start(self._arguments)
        if self._stopping.is_set():
            worker.stop()
        code = await worker.ended()
        self._worker = None
        if code != 0 and not self._stopping.is_set():
            click.echo("the worker ended; it starts again when the code changes", err=True)

    async def _end(self, running: "asyncio.Future[None]") -> None:
        if self._worker is not None:
            self._worker.stop()
        ended, _ = await asyncio.wait([running], timeout=PATIENCE)
        if not ended and self._worker is not None:
            self._worker.stop()
        await running

    async def _hold_server(self) -> None:
        """Keep the embedded server, if there is one, while no worker is there to use it."""
        folder = self._config.embedded.folder
        is_embedded = self._config.database.url is None and (folder / "postgres").exists()
        if is_embedded and self._server is None:
            self._server = await asyncio.to_thread(open_shared, folder)


class SourceFilter(DefaultFilter):
    """Lets changes of Python files and of the settings through."""

    ignore_dirs = (*DefaultFilter.ignore_dirs, ".forge")

    def __call__(self, change: Change, path: str) -> bool:
        is_source = path.endswith(".py") or Path(path).name == FILE_NAME
        return is_source and super().__call__(change, path)
