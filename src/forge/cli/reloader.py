"""Reloading: processes that are stopped and started again when sources change."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
from watchfiles import Change, DefaultFilter, awatch

from forge.cli.offspring import ForgeProcess
from forge.config import Config
from forge.config_source import FILE_NAME
from forge.store.embedded import SharedServer, open_shared

# What runs when the code changes has this long to end before it is given back.
PATIENCE = 3.0


@dataclass(frozen=True)
class Part:
    """One command that runs as a process, and what it inherits."""

    arguments: Sequence[str]
    sockets: Sequence[int] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.arguments[0]


class Reloader:
    """Runs one process of each part at a time, each with the code as it then is."""

    def __init__(self, parts: Sequence[Part], folders: Sequence[Path], config: Config) -> None:
        self._parts = parts
        self._folders = folders
        self._config = config
        self._running: set[ForgeProcess] = set()
        self._server: SharedServer | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Start the parts, and anew at each change, until told to stop."""
        changes = awatch(
            *self._folders,
            watch_filter=SourceFilter(),
            stop_event=self._stopping,
            ignore_permission_denied=True,
        )
        running = asyncio.ensure_future(self._run_all())
        async for changed in changes:
            names = ", ".join(sorted({Path(path).name for _, path in changed}))
            click.echo(f"{names} changed: starting again", err=True)
            await self._hold_server()
            await self._end(running)
            running = asyncio.ensure_future(self._run_all())
        await running
        if self._server is not None:
            await asyncio.to_thread(self._server.close)

    def stop(self) -> None:
        """Let the parts finish; the second time make them let go."""
        self._stopping.set()
        self._stop_all()

    def _stop_all(self) -> None:
        for process in self._running:
            process.stop()

    async def _run_all(self) -> None:
        await asyncio.gather(*(self._run_once(part) for part in self._parts))

    async def _run_once(self, part: Part) -> None:
        process = await ForgeProcess.start(part.arguments, sockets=part.sockets, env=part.env)
        self._running.add(process)
        if self._stopping.is_set():
            process.stop()
        code = await process.ended()
        self._running.discard(process)
        if code != 0 and not self._stopping.is_set():
            click.echo(f"the {part.name} ended; it starts again when the code changes", err=True)

    async def _end(self, running: "asyncio.Future[None]") -> None:
        self._stop_all()
        ended, _ = await asyncio.wait([running], timeout=PATIENCE)
        if not ended:
            self._stop_all()
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
