"""Fixtures of the fault tests: an app that dispatches, workers, a history, a gate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from forge import Config, Forge
from tests.faults.kit.history import History
from tests.faults.kit.ledger import Gate, Ledger
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.worker_processes import Workers
from tests.faults.scenarios import Scenario


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.jsonl")


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Forge]:
    async with Forge(Config(), database_url=database_url) as app:
        yield app


@pytest.fixture
async def ledger(database_url: str) -> AsyncIterator[Ledger]:
    connection = await asyncpg.connect(database_url)
    yield Ledger(connection)
    await connection.close()


@pytest.fixture
async def workers(database_url: str, history: History, tmp_path: Path) -> AsyncIterator[Workers]:
    with Workers(database_url, history, tmp_path) as workers:
        yield workers


@pytest.fixture
def scenario(app: Forge, workers: Workers, history: History, ledger: Ledger) -> Scenario:
    return Scenario(app, workers, history, ledger)


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[Proxy]:
    async with await Proxy.open(database_url) as proxy:
        yield proxy
