"""Shared by all runs of one bench: a folder, template data directories, one server."""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import asyncpg

from faultbench.client import SET_UP
from faultbench.postgres import DATABASE, USER, Postgres, embedded_binaries, remove
from faultbench.process import ROOT

APP = "faultbench.apps.jobs:app"
TEMPLATE = "template_bench"


class Workshop:
    """Creates servers and databases with Forge's tables and the bench's own record."""

    def __init__(self, app: str = APP, env: dict[str, str] | None = None) -> None:
        self.app = app
        # For every worker and server process; it selects a broken engine.
        self.env = env or {}
        self.folder = Path(tempfile.mkdtemp(prefix="faultbench-"))
        # Servers run under another account when the bench runs as root.
        self.folder.chmod(0o755)
        self._templates: dict[Path, Postgres] = {}
        self._shared: Postgres | None = None
        self._databases = 0

    async def copy(self, folder: Path, binaries: Path | None = None, **settings: str) -> Postgres:
        """Create a separate server for the caller, not yet started."""
        template = await self._template(binaries or embedded_binaries())
        server = Postgres(folder, binaries=template.binaries, settings=settings)
        await asyncio.to_thread(server.copy_from, template)
        return server

    async def database(self) -> str:
        """Create a database on the shared server and return its URL."""
        server, name = await self._server(), self._next_name()
        await self._run(f"create database {name} template {TEMPLATE}")
        return server.url(name)

    async def database_of(self, env: dict[str, str]) -> str:
        """Create a database with the schema of another version, which `env` selects."""
        server, name = await self._server(), self._next_name()
        await self._run(f"create database {name} template template0 owner {USER}")
        await migrate(server.url(name), self.app, env)
        await self._run(SET_UP, name)
        return server.url(name)

    async def _server(self) -> Postgres:
        if self._shared is None:
            self._shared = await self.copy(
                self.folder / "shared",
                max_connections="300",
                fsync="off",
                shared_preload_libraries="'pg_stat_statements'",
            )
            await self._shared.start()
            await self._run(f"alter database {DATABASE} rename to {TEMPLATE}")
        return self._shared

    def _next_name(self) -> str:
        self._databases += 1
        return f"bench_{self._databases}"

    def close(self) -> None:
        for server in (self._shared, *self._templates.values()):
            if server is not None:
                server.close()
        remove(self.folder)

    async def _run(self, statement: str, database: str = "postgres") -> None:
        assert self._shared is not None
        connection = await asyncpg.connect(self._shared.url(database))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def _template(self, binaries: Path) -> Postgres:
        if binaries not in self._templates:
            name = f"template-{len(self._templates)}"
            server = Postgres(self.folder / name, binaries=binaries, settings={"fsync": "off"})
            await asyncio.to_thread(server.create)
            await server.start()
            connection = await asyncpg.connect(server.url("postgres"))
            await connection.execute(f"create database {DATABASE} owner {USER}")
            await connection.close()
            await migrate(server.url(), APP)
            connection = await asyncpg.connect(server.url())
            await connection.execute(SET_UP)
            await connection.close()
            await server.stop()
            self._templates[binaries] = server
        return self._templates[binaries]


async def migrate(url: str, app: str, env: dict[str, str] | None = None) -> None:
    """Run `forge migrate`, like a deploy."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "forge.cli.main", "migrate", "--app", app],
        env={**os.environ, "FORGE_DATABASE_URL": url, **(env or {})},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"forge migrate failed: {done.stderr.strip() or done.stdout.strip()}")
