"""A full disk: outcomes wait in memory and are stored when there is space again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from forge import Config, DatabaseUnavailable, Forge, JobContext
from forge.core.events import AttemptEnded, Event, WorkerNotice
from forge.core.outcome import Settlement
from forge.store.embedded import Cluster
from tests.apps import FAST, working
from tests.faults.kit.process import until
from tests.faults.kit.small_disk import SmallDisk, database_on, small_disk

# More than the free space inside the tables' pages.
LARGE = 200_000
JOBS = 5


@pytest.fixture
def disk(server: Cluster) -> Iterator[SmallDisk]:
    with psycopg.connect(server.url("postgres")) as admin:
        (data,) = admin.execute("show data_directory").fetchone()
    with small_disk(Path(data)) as disk:
        yield disk


@pytest.fixture
async def url(disk: SmallDisk, server: Cluster, template: str) -> AsyncIterator[str]:
    async with database_on(disk, server, template) as url:
        yield url


@pytest.fixture
def app(url: str) -> Forge:
    return Forge(Config(worker=FAST), database_url=url)


@pytest.fixture
def events(app: Forge) -> list[Event]:
    events: list[Event] = []
    app.events.listeners.append(events.append)
    return events


async def test_results_are_kept_while_the_disk_is_full(
    app: Forge, url: str, disk: SmallDisk, events: list[Event]
) -> None:
    """Faults 43 and 54: each job runs once, and its output is stored when there is space."""
    is_full, ran = asyncio.Event(), []

    @app.job(max_attempts=1)
    async def produce(ctx: JobContext, n: int) -> str:
        await is_full.wait()
        ran.append(n)
        return f"{n}:" + _incompressible(LARGE)

    async with working(app):
        handles = [await produce.dispatch(n) for n in range(JOBS)]
        await until(lambda: _all_are(url, "running"), 20, "all run")
        disk.fill()
        is_full.set()
        await until(lambda: _acks_waited(events), 20, "the acks wait for room")
        with pytest.raises(DatabaseUnavailable, match="No space left"):
            await app.dispatch_many(produce, [JOBS] * 1000)
        disk.free()
        results = [await handle.result(30) for handle in handles]

    assert [result.partition(":")[0] for result in results] == [str(n) for n in range(JOBS)]
    assert sorted(ran) == list(range(JOBS))
    assert not _errors(events)


async def test_an_error_of_the_handler_is_kept_while_the_disk_is_full(
    app: Forge, url: str, disk: SmallDisk, events: list[Event]
) -> None:
    """Fault 54: the handler's own error is stored, and reported once it is stored."""
    is_full, text = asyncio.Event(), _incompressible(LARGE)

    @app.job(max_attempts=1)
    async def fail(ctx: JobContext) -> None:
        await is_full.wait()
        raise ValueError(f"its own error {text}")

    async with working(app):
        await fail.dispatch()
        await until(lambda: _all_are(url, "running"), 20, "it runs")
        disk.fill()
        is_full.set()
        await until(lambda: _acks_waited(events), 20, "the ack waits for room")
        assert _dead_letters(events) == 0
        disk.free()
        await until(lambda: _all_are(url, "dead_letter"), 30, "it is a dead letter")
        await until(lambda: _dead_letters(events), 10, "the dead letter is reported")

    assert _dead_letters(events) == 1
    assert not _errors(events)
    letter = await _row(url, "select * from forge_dead_letters")
    assert (letter["exception"], letter["attempt_count"]) == ("ValueError", 1)
    assert letter["error_message"].startswith("its own error")


async def test_a_handler_that_hits_a_full_disk_uses_no_attempt(
    app: Forge, url: str, disk: SmallDisk
) -> None:
    is_full, errors = asyncio.Event(), []

    @app.job(max_attempts=1)
    async def write(ctx: JobContext) -> None:
        await is_full.wait()
        try:
            await ctx.db.execute("create table effects as select $1::text", _incompressible(LARGE))
        except asyncpg.PostgresError as error:
            errors.append(error)
            raise

    async with working(app):
        handle = await write.dispatch()
        await until(lambda: _all_are(url, "running"), 20, "it runs")
        disk.fill()
        is_full.set()
        await until(lambda: errors, 20, "its write was refused")
        disk.free()
        await handle.result(30)

    assert [type(error) for error in errors] == [asyncpg.DiskFullError]
    row = await _row(url, "select attempts, crashes from forge_jobs")
    assert tuple(row) == (1, 1)


def _incompressible(length: int) -> str:
    return random.Random(length).randbytes(length // 2).hex()


def _acks_waited(events: list[Event]) -> bool:
    return any(
        isinstance(event, WorkerNotice)
        and event.message == "acks wait for the database"
        and "No space left" in str(event.detail)
        for event in events
    )


def _errors(events: list[Event]) -> list[Event]:
    return [e for e in events if isinstance(e, WorkerNotice) and e.level == "error"]


def _dead_letters(events: list[Event]) -> int:
    ended = [event.ack for event in events if isinstance(event, AttemptEnded)]
    return sum(isinstance(ack, Settlement) and ack.status == "dead_letter" for ack in ended)


async def _all_are(url: str, status: str) -> bool:
    row = await _row(url, f"select bool_and(status = '{status}') from forge_jobs")
    return bool(row[0])


async def _row(url: str, sql: str) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchrow(sql)
    finally:
        await connection.close()
