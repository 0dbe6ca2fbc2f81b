"""Servers that run out of connections or disk space, and exhausted connection pools."""

import asyncio
import os
import subprocess
import time

import asyncpg

from faultbench.client import LOST
from faultbench.outcome import RECOVERY, CannotRun
from faultbench.postgres import Postgres
from faultbench.process import until
from faultbench.registry import fault
from faultbench.rows.database import check_effects, require_no_attempt_used
from faultbench.stage import Stage


@fault(22, "max_connections is reached", "heartbeats continue, claims back off; all jobs complete")
async def full_server(stage: Stage) -> None:
    await _exhausted(stage, terminate=False)


@fault(56, "connections are exhausted and existing ones break", "no live worker is declared dead")
async def full_server_with_losses(stage: Stage) -> None:
    await _exhausted(stage, terminate=True)


async def _exhausted(stage: Stage, *, terminate: bool) -> None:
    server = await stage.server(max_connections="40", superuser_reserved_connections="3")
    client = stage.client_of(server.url())
    await client.execute("create role app login in role pg_read_all_data, pg_write_all_data")
    await client.execute("grant usage on schema public to app")
    await client.execute("grant execute on all functions in schema public to app")
    url = server.url(user="app")
    workers = [await stage.worker(client, url=url) for _ in range(2)]
    gate = stage.gate()
    held = await client.dispatch_many(8, "work", **gate.input)
    short = await client.dispatch_many(40, "work", seconds=0.1)
    await stage.until_started(*held)

    fillers: list[asyncpg.Connection] = []
    end = time.monotonic() + 20
    while time.monotonic() < end:
        await _fill(url, fillers)
        if terminate and int(time.monotonic()) % 3 == 0:
            # Another application takes the slot of a connection that breaks.
            await client.value(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                "where usename = 'app' and application_name not like 'filler%' "
                "and pid % 3 = $1",
                stage.rng.randrange(3),
            )
        await asyncio.sleep(0.1)
    for filler in fillers:
        filler.terminate()
    freed = time.monotonic()
    after = await client.dispatch_many(5, "work")
    started = await stage.until_started(*after, timeout=60)
    stage.recovered(max(event.monotonic for event in started) - freed, within=RECOVERY)
    gate.open()

    found = await stage.judge(client)
    stage.require(
        not set(held) & set(found.duplicated), f"live workers were declared dead: {found}"
    )
    stage.require(all(worker.is_alive for worker in workers), "a worker exited")
    stage.note(f"{len(fillers)} foreign connections, {len(short) + len(held)} jobs")


async def _fill(url: str, fillers: list[asyncpg.Connection]) -> None:
    while len(fillers) < 60:
        try:
            fillers.append(
                await asyncpg.connect(
                    url, timeout=3, server_settings={"application_name": "filler"}
                )
            )
        except (asyncpg.PostgresError, OSError, TimeoutError):
            return


@fault(23, "handlers hold every connection of their pool", "heartbeats and claims are unaffected")
async def exhausted_pool(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client, max_concurrent=30)
    other = await stage.worker(client, app="faultbench.apps.older:app")
    gate = stage.gate()
    greedy = await client.dispatch_many(15, "holding_connections", **gate.input)
    await asyncio.sleep(9)
    for _ in range(10):
        mark = await client.dispatch("work")
        dispatched = time.monotonic()
        (event,) = await stage.until_started(mark, timeout=30)
        stage.recovered(max(0.0, event.monotonic - dispatched), within=3)
    gate.open()
    found = await stage.judge(client)
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    stage.require(worker.is_alive and other.is_alive and greedy, "a worker exited")


@fault(43, "the disk is full", "dispatch fails, no false acknowledgement; it recovers")
async def full_disk(stage: Stage) -> None:
    server = await _small_server(stage)
    client = stage.client_of(server.url())
    workers = [await stage.worker(client) for _ in range(2)]
    await client.dispatch_many(50, "work", seconds=0.1)
    ballast = server.folder / "ballast"
    rejected = 0
    for _ in range(2):
        _fill_disk(ballast)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                await client.dispatch("work", seconds=0.05, padding="x" * 20_000)
            except LOST:
                rejected += 1
                await asyncio.sleep(0.2)
        ballast.unlink()
        freed = time.monotonic()
        await until(server.is_ready, 60, "the server is ready")
        mark = await client.dispatch_until_acknowledged("work", until_time=time.monotonic() + 60)
        stage.require(mark, "dispatch does not work after the disk was freed")
        (event,) = await stage.until_started(str(mark), timeout=60)
        stage.recovered(max(0.0, event.monotonic - freed), within=30)
    stage.require(rejected, "the disk was never full")
    stage.note(f"{rejected} dispatches were rejected")
    await stage.judge(client, timeout=60)
    stage.require(all(worker.is_alive for worker in workers), "a worker exited")


async def _small_server(stage: Stage) -> Postgres:
    """Start a server on a small file system."""
    if os.geteuid() != 0:
        raise CannotRun("mounting a tmpfs needs root")
    folder = stage.folder / "postgres-0"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(folder)]
    if await asyncio.to_thread(subprocess.call, mount):
        raise CannotRun("cannot mount a tmpfs on this machine")
    stage.at_close(lambda: subprocess.call(["umount", "-l", str(folder)]))
    return await stage.server(
        max_wal_size="'48MB'", min_wal_size="'32MB'", wal_keep_size="0", shared_buffers="'16MB'"
    )


def _fill_disk(ballast: os.PathLike[str]) -> None:
    with open(ballast, "wb") as file:
        try:
            while True:
                os.write(file.fileno(), bytes(65536))
        except OSError:
            return


@fault(
    54,
    "read-only, disk full and serialization failures",
    "no attempt is used, no result dropped, no false dead letter",
)
async def platform_faults(stage: Stage) -> None:
    server = await _small_server(stage)
    client = stage.client_of(server.url())
    await client.execute("alter database bench set default_transaction_isolation = 'serializable'")
    workers = [await stage.worker(client) for _ in range(2)]
    dispatcher = stage.client_of(server.url())
    kinds = ("once", "querying", "effect", "work")
    loading = asyncio.create_task(dispatcher.load(45, rate=15, rng=stage.rng, kinds=kinds))
    ballast = server.folder / "ballast"
    for _ in range(2):
        await asyncio.sleep(stage.rng.uniform(3, 5))
        server.configure(default_transaction_read_only="on")
        server.reload()
        await asyncio.sleep(stage.rng.uniform(3, 6))
        server.configure(default_transaction_read_only="off")
        server.reload()
        await asyncio.sleep(stage.rng.uniform(3, 5))
        _fill_disk(ballast)
        await asyncio.sleep(stage.rng.uniform(4, 6))
        ballast.unlink()
    await until(server.is_ready, 60, "the server is ready")
    await loading
    await stage.judge(client, timeout=90)
    await require_no_attempt_used(stage, client)
    await check_effects(stage, client)
    stage.require(all(worker.is_alive for worker in workers), "a worker exited")
