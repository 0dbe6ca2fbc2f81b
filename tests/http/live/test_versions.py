"""The version of a job: later states have greater ones, through its whole life."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest

from forge import Forge, JobContext, JobHandle, Worker
from forge.store import jobs
from forge.store.connection.database import Database
from tests.apps import Work
from tests.faults.kit.process import until
from tests.http.conftest import MakeToken
from tests.http.live.conftest import change
from tests.http.live_client import Client, client, watch_token
from tests.worker.early_completion import complete_early

Job = dict[str, Any]
# JavaScript's numbers are exact up to here.
MAX_SAFE_INTEGER = 2**53 - 1


class Stages:
    """A job whose handler does what the test wants of each attempt."""

    def __init__(self, app: Forge) -> None:
        self.orders: asyncio.Queue[str] = asyncio.Queue()
        self.leases: list[int] = []

        @app.job(max_attempts=10)
        async def staged(ctx: JobContext) -> str:
            self.leases.append(ctx.lease)
            while (order := await self.orders.get()) != "return":
                if order == "fail":
                    raise ConnectionError("not now")
                ctx.progress(int(order), f"{order} of attempt {ctx.attempt}")
            return "done"

        self.dispatch = staged.dispatch


@asynccontextmanager
async def polled(address: str, job_id: UUID) -> AsyncIterator[list[Job]]:
    """Poll a job throughout the block, by several clients, and collect every answer."""
    seen: list[Job] = []

    async def poll(http: httpx.AsyncClient) -> None:
        token = {"watch_token": watch_token(job_id)}
        while True:
            seen.append((await http.get(f"/_api/jobs/{job_id}/live", params=token)).json())

    async with httpx.AsyncClient(base_url=address) as http:
        polls = [asyncio.create_task(poll(http)) for _ in range(3)]
        try:
            yield seen
        finally:
            for task in polls:
                task.cancel()
            await asyncio.gather(*polls, return_exceptions=True)


@asynccontextmanager
async def subscribed(address: str, handle: JobHandle, token: MakeToken) -> AsyncIterator[Client]:
    async with client(address, token("user")) as live:
        await live.subscribe(handle.id)
        yield live


class Followed:
    """The states of a job that one socket received, in order."""

    def __init__(self, live: Client) -> None:
        self._live = live
        self.seen: list[Job] = []

    async def until(self, **wanted: Any) -> None:
        def matches(job: Job) -> bool:
            self.seen.append(job)
            return wanted.items() <= job.items()

        await self._live.job(matches)


async def test_it_grows_through_retry_rescue_and_cancellation(
    app: Forge, work: Work, address: str, token: MakeToken, database: Database
) -> None:
    stages = Stages(app)
    handle = await stages.dispatch(delay="1h")
    async with (
        polled(address, handle.id) as polls,
        subscribed(address, handle, token) as live,
    ):
        job = Followed(live)
        await job.until(status="pending", attempts=0)
        worker = await work(app)
        await app.run_now(handle.id)
        await report(stages, job, 80)
        stages.orders.put_nowait("fail")
        await job.until(status="retry", attempts=1)
        await app.run_now(handle.id)
        await report(stages, job, 10)  # the second attempt begins again
        await report(stages, job, 5)  # and a handler may go back
        await lose(database, worker)
        await job.until(last_error="the worker died while it ran this job")
        await until(lambda: len(stages.leases) == 3, 10, "the lost attempt has been replaced")
        await report(stages, job, 1)
        await handle.cancel("enough")
        await job.until(status="cancelled")

    see_that_versions_order(job.seen, polls)
    assert {seen["status"] for seen in job.seen} >= {"pending", "running", "retry", "cancelled"}
    percents = [seen["progress_percent"] for seen in job.seen]
    assert percents != sorted(percents)


async def test_it_grows_until_the_output_is_there(
    app: Forge, work: Work, address: str, token: MakeToken
) -> None:
    stages = Stages(app)
    handle = await stages.dispatch()
    async with (
        polled(address, handle.id) as polls,
        subscribed(address, handle, token) as live,
    ):
        job = Followed(live)
        await work(app)
        for percent in (20, 40, 60):
            await report(stages, job, percent)
        stages.orders.put_nowait("return")
        await job.until(status="completed", output="done")

    see_that_versions_order(job.seen, polls)


@pytest.mark.parametrize("output", ["receipt", None])
async def test_a_job_that_awaited_its_output_has_a_greater_one_when_it_is_completed(
    app: Forge, work: Work, address: str, token: MakeToken, output: str | None
) -> None:
    """Without an output its row stays as it is, and is shown in another way after a while."""
    handle, go_on = await complete_early(app, work, output=output)

    async with subscribed(address, handle, token) as live:
        job = Followed(live)
        await job.until(status="running")
        if output is not None:
            go_on.set()
        await job.until(status="completed", output=output)
    go_on.set()

    versions = [seen["version"] for seen in job.seen]
    assert versions == sorted(set(versions))


async def test_it_grows_when_an_older_transaction_completes_the_job(
    app: Forge, work: Work, address: str, token: MakeToken
) -> None:
    """Its number is lower than those of the transactions that wrote the progress."""
    was_seen = asyncio.Event()

    @app.job
    async def pay(ctx: JobContext) -> None:
        async with ctx.complete_in_transaction("receipt") as connection:
            await connection.execute("select pg_current_xact_id()")
            ctx.progress(50)
            await was_seen.wait()

    handle = await pay.dispatch()
    async with subscribed(address, handle, token) as live:
        job = Followed(live)
        await work(app)
        await job.until(progress_percent=50)
        was_seen.set()
        await job.until(status="completed")

    versions = [seen["version"] for seen in job.seen]
    assert versions == sorted(set(versions))


async def test_a_change_by_hand_has_one_and_no_change_has_none(
    quick: Client, job_id: UUID, psql: Any
) -> None:
    await quick.subscribe(job_id)
    first = await quick.job()
    await quick.subscribe(job_id)  # as a heartbeat
    again = await quick.job()
    await change(psql, job_id, 5)
    changed = await quick.job()

    assert again == first
    assert changed["version"] == first["version"] + 1


async def report(stages: Stages, job: Followed, percent: int) -> None:
    """Let the handler report progress, and wait until the follower has it."""
    stages.orders.put_nowait(str(percent))
    await job.until(status="running", progress_percent=percent)


async def lose(database: Database, worker: Worker) -> None:
    """Rescue the jobs of a worker as if it were dead."""
    rescue = jobs.rescue([worker.registration.id], None, dead_after=0, stale_after=0, limit=10)
    async with database.transaction() as connection:
        await connection.fetch(rescue.sql, *rescue.args)
        # A suspect would run in a process of its own, which has no orders.
        await connection.execute("update forge_jobs set suspect = false")


def see_that_versions_order(seen: list[Job], polls: list[Job]) -> None:
    """Assert that a greater version is a later state, and an equal one the same state."""
    versions = [job["version"] for job in seen]
    assert versions == sorted(set(versions))
    assert all(isinstance(n, int) and 0 <= n <= MAX_SAFE_INTEGER for n in versions)
    # Answers to concurrent requests arrive in any order: the version is what tells them apart.
    by_version = {job["version"]: job for job in seen}
    for job in polls:
        assert by_version.setdefault(job["version"], job) == job
    assert polls
    assert by_version[max(by_version)] == seen[-1]
