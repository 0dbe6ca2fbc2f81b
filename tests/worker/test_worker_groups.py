"""Several workers that serve the same jobs: one alone prunes, and calls are passed on."""

import asyncio
from typing import Any

from forge import Forge, JobContext, Worker
from forge.core.workers.wakeups import call, is_called
from forge.store.notify import WAKE
from forge.transports.postgres import PostgresTransport
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until

# One more than are called for a single job.
WORKERS = 4


async def test_a_call_that_finds_its_workers_busy_reaches_one_that_is_not(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    release = asyncio.Event()
    apps = [_app(make_app, release) for _ in range(WORKERS)]
    busy = [await work(app) for app in apps[:-1]]
    for _ in busy:
        await apps[0].dispatch("hold", {})
    await until(lambda: all(worker.runner.running for worker in busy), 20, "all of them are busy")
    idle = await work(apps[-1])
    await _know_each_other([*busy, idle])

    # First no call at all, then a call that is for the others.
    job_id = await psql.fetchval(
        "insert into forge_jobs (job_type, input) values ('ping', '{}') returning id"
    )
    peers = sorted(worker.registration.id for worker in (*busy, idle))
    not_for_it = next(
        payload
        for nonce in range(1000)
        if not is_called(payload := call(1, nonce), idle.registration.id, peers)
    )
    await psql.execute("select pg_notify($1, $2)", WAKE, not_for_it)

    await until(lambda: _is_completed(psql, job_id), 20, "the idle one has done it")
    release.set()


async def test_one_of_them_prunes(make_app: MakeApp, work: Work, psql: Any) -> None:
    apps = [_app(make_app, asyncio.Event(), retention={"completed": "1ms"}) for _ in range(2)]
    workers = [await work(app) for app in apps]
    await _know_each_other(workers)
    first, other = sorted(workers, key=lambda worker: worker.registration.id)
    handle = await apps[0].dispatch("ping", {})
    await handle.result(10)

    for worker, left in ((other, 1), (first, 0)):
        await worker._prune()
        assert await psql.fetchval("select count(*) from forge_jobs") == left


async def test_a_draining_worker_is_called_no_more(make_app: MakeApp, work: Work) -> None:
    release = asyncio.Event()
    # It stays until its job ends: one that has gone is called no more in any case.
    apps = [_app(make_app, release, shutdown_grace="10m") for _ in range(2)]
    draining = await work(apps[0])
    await apps[0].dispatch("hold", {})
    await until(lambda: draining.runner.running, 20, "it is busy")
    other = await work(apps[1])
    await _know_each_other([draining, other])

    draining.drain()

    await until(lambda: _transport(other).peers == [other.registration.id], 20, "it is alone")
    assert other.is_first
    release.set()


async def _know_each_other(workers: list[Worker]) -> None:
    def all_do() -> bool:
        return all(
            transport.is_listening() and len(transport.peers) == len(workers)
            for transport in map(_transport, workers)
        )

    await until(all_do, 20, "each hears, and knows the others")


def _transport(worker: Worker) -> PostgresTransport:
    assert isinstance(worker.transport, PostgresTransport)
    return worker.transport


def _app(make_app: MakeApp, release: asyncio.Event, **settings: Any) -> Forge:
    app = make_app(max_concurrent=1, idle_poll_interval="1h", **settings)

    @app.job
    async def hold(ctx: JobContext) -> None:
        await release.wait()

    @app.job
    async def ping(ctx: JobContext) -> None: ...

    return app


async def _is_completed(psql: Any, job_id: Any) -> bool:
    status = "select status from forge_jobs where id = $1"
    return bool(await psql.fetchval(status, job_id) == "completed")
