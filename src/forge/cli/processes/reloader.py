"""Restarts child processes when source files change."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
from watchfiles import Change, DefaultFilter, awatch

from forge.cli.processes.child_process import ForgeProcess
from forge.config.settings import Config
from forge.config.sources import FILE_NAME
from forge.store.embedded import SharedServer, open_shared

# Seconds that running jobs have to finish at a reload before they are released.
RELOAD_TIMEOUT = 3.0


@dataclass(frozen=True)
class ChildCommand:
    """A command to run as a child process, and what it inherits."""

    arguments: Sequence[str]
    sockets: Sequence[int] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.arguments[0]


class Reloader:
    """Runs one process of each part, and restarts all of them at a change."""

    def __init__(
        self, parts: Sequence[ChildCommand], folders: Sequence[Path], config: Config
    ) -> None:
        self._parts = parts
        self._folders = folders
        self._config = config
        self._running: set[ForgeProcess] = set()
        self._server: SharedServer | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Start the parts, restart them at each change, and return after `stop()`."""
        changes = awatch(
            *self._folders,
            watch_filter=SourceFilter(),
            stop_event=self._stopping,
            ignore_permission_denied=True,
        )
        running = asyncio.ensure_future(self._run_all())
        async for changed in changes:
            names = ", ".join(sorted({Path(path).name for _, path in changed}))
            click.echo(f"{names} changed: restarting", err=True)
            await self._keep_embedded_server()
            await self._end(running)
            running = asyncio.ensure_future(self._run_all())
        await running
        if self._server is not None:
            await asyncio.to_thread(self._server.close)

    def stop(self) -> None:
        """Stop the parts: the first call lets them finish, the second stops them at once."""
        self._stopping.set()
        self._stop_all()

    def _stop_all(self) -> None:
        for process in self._running:
            process.stop()

    async def _run_all(self) -> None:
        await asyncio.gather(*(self._run_once(part) for part in self._parts))

    async def _run_once(self, part: ChildCommand) -> None:
        process = await ForgeProcess.start(part.arguments, sockets=part.sockets, env=part.env)
        self._running.add(process)
        if self._stopping.is_set():
            process.stop()
        code = await process.ended()
        self._running.discard(process)
        if code != 0 and not self._stopping.is_set():
            click.echo(f"the {part.name} exited; it restarts when the code changes", err=True)

    async def _end(self, running: "asyncio.Future[None]") -> None:
        self._stop_all()
        ended, _ = await asyncio.wait([running], timeout=RELOAD_TIMEOUT)
        if not ended:
            self._stop_all()
        await running

    async def _keep_embedded_server(self) -> None:
        """Keep the embedded PostgreSQL running while the worker restarts."""
        folder = self._config.embedded.folder
        is_embedded = self._config.database.url is None and (folder / "postgres").exists()
        if is_embedded and self._server is None:
            self._server = await asyncio.to_thread(open_shared, folder)


class SourceFilter(DefaultFilter):
    """Accepts changes of Python files and of the settings file."""

    ignore_dirs = (*DefaultFilter.ignore_dirs, ".forge")

    def __call__(self, change: Change, path: str) -> bool:
        is_source = path.endswith(".py") or Path(path).name == FILE_NAME
        return is_source and super().__call__(change, path)
