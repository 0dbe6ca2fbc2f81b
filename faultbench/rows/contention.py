"""Locks, deadlocks, timeouts and held snapshots."""

import asyncio
import time
from contextlib import suppress
from uuid import UUID

import asyncpg

from faultbench.client import Client
from faultbench.outcome import RECOVERY
from faultbench.process import until
from faultbench.registry import fault
from faultbench.stage import Stage
from forge import Config, Forge, UnknownJob


@fault(25, "the job table is locked (ALTER, LOCK TABLE)", "workers wait and continue; none crashes")
async def locked_table(stage: Stage) -> None:
    client = await stage.client()
    workers = [await stage.worker(client) for _ in range(2)]
    gate = stage.gate()
    held = await client.dispatch_many(4, "work", **gate.input)
    await client.dispatch_many(50, "work", seconds=0.2)
    await stage.until_started(*held)
    locker = await client.connect()
    lock = locker.transaction()
    await lock.start()
    await locker.execute("lock table forge_jobs in access exclusive mode")
    # Longer than dead_after: heartbeats must not need the table.
    await asyncio.sleep(12)
    await lock.rollback()
    await locker.close()
    freed = time.monotonic()
    mark = await client.dispatch("work")
    (event,) = await stage.until_started(mark, timeout=60)
    stage.recovered(max(0.0, event.monotonic - freed), within=RECOVERY)
    gate.open()
    found = await stage.judge(client)
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    stage.require(all(worker.is_alive for worker in workers), "a worker exited")


@fault(27, "statement timeouts of 50 ms under locks", "statements are retried; no state is lost")
async def statement_timeouts(stage: Stage) -> None:
    client = await stage.client()
    database = client.url.rsplit("/", 1)[1]
    await client.execute(f"alter database {database} set statement_timeout = '50ms'")
    workers = [await stage.worker(client) for _ in range(2)]
    patient = stage.client_of(client.url)
    locker = await client.connect(statement_timeout="0")
    loading = asyncio.create_task(_dispatch_repeatedly(stage, patient, 200))
    while not loading.done():
        async with locker.transaction():
            await locker.execute("lock table forge_jobs in share row exclusive mode")
            await asyncio.sleep(stage.rng.uniform(0.05, 0.3))
        await asyncio.sleep(stage.rng.uniform(0.1, 0.5))
    await loading
    await locker.close()
    await stage.judge(client, timeout=60)
    stage.require(all(worker.is_alive for worker in workers), "a worker exited")


async def _dispatch_repeatedly(stage: Stage, client: Client, count: int) -> None:
    for _ in range(count):
        await client.dispatch_until_acknowledged(
            stage.rng.choice(("work", "flaky")), until_time=time.monotonic() + 60, seconds=0.05
        )


@fault(
    24,
    "a snapshot is held open for minutes",
    "throughput stays above a stated floor; forge doctor reports it",
    timeout=420,
)
async def held_snapshot(stage: Stage) -> None:
    client = await stage.client()
    await stage.worker(client, max_concurrent=50, batch_size=50)
    before = await _drain_rate(stage, client)
    holder = await client.connect()
    snapshot = holder.transaction(isolation="repeatable_read")
    await snapshot.start()
    await holder.fetchval("select count(*) from forge_jobs")
    held = time.monotonic()
    rates = []
    while time.monotonic() < held + 90:
        rates.append(await _drain_rate(stage, client))
    doctor = stage.forge(client, "doctor")
    await doctor.ended(60)
    await snapshot.rollback()
    await holder.close()
    stage.note(
        f"{before:.0f} jobs/s before, {min(rates):.0f} at worst and {rates[-1]:.0f} at the end of "
        f"{time.monotonic() - held:.0f} s under a held snapshot"
    )
    stage.require(min(rates) > before * FLOOR, f"below {FLOOR:.0%} of the throughput before")
    stage.note(
        "forge doctor " + ("reports" if "snapshot" in doctor.log() else "does not report") + " it"
    )
    await client.execute("delete from faultbench_moves")
    waiting = await client.value("select count(*) from forge_jobs where status <> 'completed'")
    stage.require(waiting == 0, f"{waiting} jobs are left")
    stage.outcome.jobs, stage.outcome.lost = (
        await client.value("select count(*) from forge_jobs"),
        0,
    )


FLOOR = 0.4
RATE = """select $1::integer / extract(epoch from max(completed_at) - min(claimed_at))
from (select * from forge_jobs order by id desc limit $1) as drained"""


async def _drain_rate(stage: Stage, client: Client, count: int = 3000) -> float:
    """Return the jobs per second of one drain, without the history: it would be the bottleneck."""
    await client.execute(
        f"select forge_dispatch('empty', '{{}}', notify => n = {count}) "
        f"from generate_series(1, {count}) as n"
    )
    await client.until_final(120)
    # Use the database's timestamps: polling for the end takes longer the more jobs there are.
    return float(await client.value(RATE, count))


@fault(26, "overlapping bulk changes", "no deadlock, or retried; every row is consistent")
async def deadlock_pressure(stage: Stage) -> None:
    client = await stage.client()
    env = {"FORGE_RETENTION_COMPLETED": "2s", "FORGE_RETENTION_FAILED": "2s"}
    worker = await stage.worker(client, env=env, max_concurrent=20)
    await client.execute("select forge_dispatch('failing', '{}') from generate_series(1, 300)")
    failed = "select count(*) from forge_jobs where job_type = 'failing' and status = 'dead_letter'"
    await until(lambda: _equals(client, failed, 300), 60, "all have failed permanently")
    gate = stage.gate()
    held = await client.dispatch_many(120, "work", **gate.input)

    before = await client.value(DEADLOCKS)
    commands = [
        stage.forge(client, "dlq", "reprocess", "--all", "--rate", "1000/s") for _ in range(2)
    ]
    async with Forge(Config(), database_url=client.url) as app:
        ids = [(await client.job(mark))["id"] for mark in held]
        await asyncio.gather(*(_cancel_all(stage, app, ids) for _ in range(3)))
    gate.open()
    for command in commands:
        await command.ended(60)
    await client.until_final(120)
    found = await client.value(DEADLOCKS) - before
    stage.note(f"{found} deadlocks under overlapping cancels, reprocessing and pruning")

    batches = [asyncio.create_task(_same_keys(stage, client.url)) for _ in range(4)]
    retried = sum(await asyncio.gather(*batches))
    keys = await client.value("select count(*) from forge_idempotency_keys where key like 'k%'")
    stage.require(keys == KEYS, f"{keys} keys instead of {KEYS}")
    stage.note(f"{retried} transactions of dispatchers with conflicting lock order were retried")
    await client.until_final(60)
    stage.require(worker.is_alive, "the worker exited")


DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
KEYS = 400


async def _equals(client: Client, count: str, wanted: int) -> bool:
    return bool(await client.value(count) == wanted)


async def _cancel_all(stage: Stage, app: Forge, ids: list[UUID]) -> None:
    """Request cancellation of the same jobs as the others, in another order."""
    shuffled = list(ids)
    stage.rng.shuffle(shuffled)
    for id in shuffled:
        with suppress(UnknownJob):
            await app.cancel(id)


async def _same_keys(stage: Stage, url: str) -> int:
    """Dispatch the same keys as the others, in another order; return the number of retries."""
    client = stage.client_of(url)
    keys = list(range(KEYS))
    stage.rng.shuffle(keys)
    retried = 0
    for first in range(0, KEYS, 50):
        dispatches = ";".join(
            f"select forge_dispatch('empty', '{{}}', idempotency_key => 'k{key}')"
            for key in keys[first : first + 50]
        )
        while True:
            try:
                await client.execute(dispatches)
                break
            except asyncpg.DeadlockDetectedError:
                # The dispatcher owns these transactions and their order, so it retries them.
                retried += 1
                await asyncio.sleep(stage.rng.uniform(0, 0.05))
    return retried
