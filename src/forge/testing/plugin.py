"""The pytest plugin: an app on a database of each test's own, and a worker in the test's loop."""

import asyncio
import inspect
from collections.abc import Generator, Iterator
from contextlib import AsyncExitStack, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from forge import Forge, Worker
from forge.cli.project import find_app
from forge.config.test_guard import TEST_NAMES, guard_databases
from forge.core.errors import ForgeError
from forge.testing.databases import Databases, open_databases
from forge.testing.isolation import isolated, running
from forge.testing.must_await import forgotten

_APP = pytest.StashKey[Forge]()
_WORKER = pytest.StashKey[Worker]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("forge_app", "the app under test, as MODULE:APP; by default that of forge.toml")
    parser.addini(
        "forge_databases",
        f"patterns of names of databases that tests may open, besides {', '.join(TEST_NAMES)}",
        type="args",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    # Before the tests import the app, which may connect.
    guard_databases([*TEST_NAMES, *config.getini("forge_databases")])


@pytest.fixture(scope="session")
def forge_databases(pytestconfig: pytest.Config) -> Iterator[Databases]:
    """Where tests get their databases: FORGE_TEST_DATABASE_URL, or an embedded server for tests."""
    with open_databases(Path(pytestconfig.rootpath)) as databases:
        yield databases


@pytest.fixture
def forge_database_url(forge_databases: Databases) -> Iterator[str]:
    """The URL of a database of this test's own, with Forge's tables."""
    url = forge_databases.take()
    yield url
    forge_databases.give_back(url)


@pytest.fixture
def forge_target(pytestconfig: pytest.Config) -> Forge:
    """The app under test; override it, or set `forge_app` in the settings of pytest."""
    try:
        return find_app(pytestconfig.getini("forge_app") or None, None)
    except ForgeError as error:
        raise pytest.UsageError(
            f'{error}\nOr set forge_app = "module:app" in the settings of pytest, or override the '
            "fixture forge_target, which returns the app under test."
        ) from error


@pytest.fixture
def forge_app(
    request: pytest.FixtureRequest, forge_target: Forge, forge_database_url: str
) -> Iterator[Forge]:
    """The app under test on a database of this test's own."""
    with isolated(forge_target, forge_database_url):
        request.node.stash[_APP] = forge_target
        yield forge_target
        forge_target.sync.close()
        if forge_target.sessions.is_open:
            # Its loop has ended, and its connections with it.
            with suppress(Exception):
                asyncio.run(forge_target.close())


@pytest.fixture
def forge_worker(request: pytest.FixtureRequest, forge_app: Forge) -> Worker:
    """A worker for the app, which runs in the event loop of the test while that runs."""
    if not inspect.iscoroutinefunction(request.node.obj):
        raise pytest.UsageError(
            "forge_worker runs in the event loop of the test: write `async def`, or run the jobs "
            "of a plain test with forge.testing.sync.run_all(app)"
        )
    worker = request.node.stash[_WORKER] = Worker(forge_app)
    return worker


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = _in_its_loop(item.obj, item.stash)
    forgotten()
    try:
        result = yield
    finally:
        names = forgotten()
    if names:
        name = names[0]
        pytest.fail(f"{name} was not awaited, so it checked nothing; write `await {name}(…)`")
    return result


def _in_its_loop(test: Any, stash: pytest.Stash) -> Any:
    """Return a test that starts its worker and closes its app in its own event loop."""
    if _APP not in stash:
        return test

    @wraps(test)
    async def run(*args: Any, **kwargs: Any) -> Any:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(stash[_APP].close)
            if _WORKER in stash:
                await stack.enter_async_context(running(stash[_WORKER]))
            return await test(*args, **kwargs)

    return run
