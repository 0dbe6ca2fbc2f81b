"""The testing kit for unittest: a test case whose app has a database of each test's own."""

import atexit
import unittest
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import ClassVar

from forge.app import Forge
from forge.config.test_guard import guard_databases
from forge.core.errors import InvalidValue
from forge.testing.databases import Databases, open_databases
from forge.testing.isolation import isolated, running
from forge.testing.must_await import forgotten
from forge.worker.worker import Worker


class ForgeTestCase(unittest.IsolatedAsyncioTestCase):
    """Set `app` in your class; each test, plain or async, gets a database of its own for it.

    Before it is first used, no app may open another database than a test's.
    """

    app: ClassVar[Forge]

    @classmethod
    def setUpClass(cls) -> None:
        if not isinstance(getattr(cls, "app", None), Forge):
            raise InvalidValue(f"set the app under test: class {cls.__name__}: app = shop.app")
        guard_databases()
        super().setUpClass()

    def setUp(self) -> None:
        super().setUp()
        databases = _databases()
        url = databases.take()
        self.addCleanup(databases.give_back, url)
        self.enterContext(isolated(self.app, url))
        self.addCleanup(self.app.sync.close)
        self.addCleanup(self._check_awaited)
        forgotten()

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.addAsyncCleanup(self.app.close)

    async def start_worker(self) -> Worker:
        """Run a worker in the event loop of the test until it ends."""
        worker = Worker(self.app)
        await self.enterAsyncContext(running(worker))
        return worker

    def _check_awaited(self) -> None:
        if names := forgotten():
            self.fail(f"{names[0]} was not awaited, so it checked nothing; write `await`")


@cache
def _databases() -> Databases:
    """Open the databases of this process, which are dropped when it ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_databases(Path.cwd()))
