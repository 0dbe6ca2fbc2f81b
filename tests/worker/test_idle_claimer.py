"""A claimer that cannot claim from a lane that is due waits: it does not turn round and round."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import psycopg

from forge import DatabaseUnavailable, Worker
from tests.apps import MakeApp, Work, fill_slots, waiting
from tests.faults.kit.process import until

# No test waits this long: what is claimed earlier was found when its lane was due.
SELDOM = {"poll_interval": "10m", "idle_poll_interval": "10m"}
MAX_TURNS = 10


async def test_a_full_worker_waits_for_a_slot(make_app: MakeApp, work: Work) -> None:
    app = make_app(max_concurrent=1, **SELDOM)
    due = await waiting(app, delay="2s")
    worker, _ = await fill_slots(app, work)
    turns = Turns(worker)
    worker._signals.room_changed.set()
    at = (await due.get()).scheduled_at
    await until(lambda: at <= datetime.now(UTC), 10, "the lane is due")
    worker._signals.room_changed.set()

    await _many_turns_of_the_loop()

    assert turns.count <= MAX_TURNS


async def test_a_worker_whose_database_is_away_waits_for_it(
    make_app: MakeApp, work: Work, database_url: str, maintenance: "psycopg.Connection[Any]"
) -> None:
    app = make_app(heartbeat_interval="100ms", dead_after="400ms", **SELDOM)
    due = await waiting(app, delay="2s")
    at = (await due.get()).scheduled_at
    worker = await work(app)
    lanes = worker.finder.lanes
    await until(lambda: lanes.next_due is not None, 10, "it knows when the lane is due")

    async with _away(maintenance, database_url):
        await until(
            lambda: not worker.heartbeat.is_heard(), 10, "its heartbeats do not get through"
        )
        await until(lambda: at <= datetime.now(UTC), 10, "the lane is due")
        turns = Turns(worker)
        worker._signals.room_changed.set()
        await _many_turns_of_the_loop()

    assert turns.count <= MAX_TURNS
    assert await due.result(30) == "ran"


async def test_a_claim_that_failed_is_tried_again_however_seldom_the_worker_polls(
    make_app: MakeApp, work: Work, database_url: str, maintenance: "psycopg.Connection[Any]"
) -> None:
    app = make_app(**SELDOM)
    await waiting(app, delay="1h")
    worker = await work(app)
    lanes = worker.finder.lanes
    await until(lambda: lanes.next_due is not None, 10, "the first survey has ended")
    turns = Turns(worker)

    async with _away(maintenance, database_url):
        worker.claimer.wake()
        await until(lambda: turns.failed > 0, 10, "a claim failed")
    due = await waiting(app, delay="0s")

    assert await due.result(30) == "ran"


class Turns:
    """Counts how often a claimer asks what to claim."""

    def __init__(self, worker: Worker) -> None:
        self.count = 0
        self.failed = 0
        self._ask = worker.claimer._request
        worker.claimer._request = self._counted  # type: ignore[method-assign]

    async def _counted(self) -> Any:
        self.count += 1
        try:
            return await self._ask()
        except DatabaseUnavailable:
            self.failed += 1
            raise


async def _many_turns_of_the_loop() -> None:
    others = 0

    def is_over() -> bool:
        nonlocal others
        others += 1
        return others > 50

    await until(is_over, 10, "the loop had time for many turns")


@asynccontextmanager
async def _away(maintenance: "psycopg.Connection[Any]", url: str) -> AsyncIterator[None]:
    """Have the server refuse a database and end its sessions, as during a restart."""
    name = urlsplit(url).path[1:]
    ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = %s"
    await asyncio.to_thread(
        maintenance.execute, f"alter database {name} allow_connections false".encode()
    )
    try:
        await asyncio.to_thread(maintenance.execute, ended, [name])
        yield
    finally:
        await asyncio.to_thread(
            maintenance.execute, f"alter database {name} allow_connections true".encode()
        )
