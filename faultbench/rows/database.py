"""Servers that restart, refuse, fill up or are locked."""

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable

import asyncpg

from faultbench.client import LOST, Client
from faultbench.outcome import CannotRun
from faultbench.postgres import Postgres
from faultbench.process import until
from faultbench.registry import fault
from faultbench.stage import Stage

KINDS = ("work", "work", "work_in_thread", "once", "effect", "querying", "flaky")
RECOVERY = 10.0


async def under_load(
    stage: Stage,
    server: Postgres,
    break_it: Callable[[], Awaitable[None]],
    *,
    times: int,
    pauses: tuple[float, float] = (4, 8),
    within: float = RECOVERY,
) -> None:
    """Break the server again and again while jobs are dispatched, and see work go on."""
    client = stage.client_of(server.url())
    for _ in range(2):
        await stage.worker(client)
    dispatcher = stage.client_of(server.url())
    loading = asyncio.create_task(
        dispatcher.load(times * 10.0, rate=20, dice=stage.dice, kinds=KINDS)
    )
    for _ in range(times):
        await asyncio.sleep(stage.dice.uniform(*pauses))
        await break_it()
        back = time.monotonic()
        first = await stage.until_started_since(back)
        stage.recovered(first.monotonic - back, within=within)
    await loading
    await stage.judge(client, timeout=90)
    await check_effects(stage, client)


async def check_effects(stage: Stage, client: Client) -> None:
    """Each effect that was written with its completion exists once."""
    twice = await client.fetch(
        "select mark from faultbench_effects where mark like 'effect%' "
        "group by mark having count(*) > 1"
    )
    stage.require(not twice, f"effects were written twice: {[row['mark'] for row in twice[:3]]}")


@fault(17, "PostgreSQL restarts immediately, without a checkpoint", "nothing is lost; work goes on")
async def immediate_restarts(stage: Stage) -> None:
    server = await stage.server()

    async def restart() -> None:
        await server.stop("immediate")
        await asyncio.sleep(stage.dice.uniform(0, 4))
        await server.start()

    await under_load(stage, server, restart, times=5)
    await no_attempt_was_used_up(stage, stage.client_of(server.url()))


async def no_attempt_was_used_up(stage: Stage, client: Client) -> None:
    spent = await client.fetch(
        "select input ->> 'mark' as mark, attempts, last_error from forge_jobs "
        "where job_type <> 'flaky' and attempts > 1"
    )
    told = [(row["mark"], row["attempts"], row["last_error"]) for row in spent[:2]]
    stage.require(not spent, f"{len(spent)} jobs used up attempts: {told}")


@fault(18, "SIGKILL of the postmaster", "what was acknowledged is kept; work goes on")
async def killed_postmaster(stage: Stage) -> None:
    server = await stage.server()

    async def kill() -> None:
        await server.kill()
        await asyncio.sleep(stage.dice.uniform(0, 3))
        await server.start()

    await under_load(stage, server, kill, times=4)


@fault(
    20,
    "the primary turns read-only",
    "no job is marked wrongly, no attempt used up; work goes on when it is writable",
)
async def read_only(stage: Stage) -> None:
    server = await stage.server()

    async def turn() -> None:
        server.configure(default_transaction_read_only="on")
        server.reload()
        await asyncio.sleep(stage.dice.uniform(4, 8))
        server.configure(default_transaction_read_only="off")
        server.reload()

    await under_load(stage, server, turn, times=2)
    await no_attempt_was_used_up(stage, stage.client_of(server.url()))


@fault(22, "max_connections is reached", "heartbeats survive, claims back off; all completes")
async def full_server(stage: Stage) -> None:
    await _exhausted(stage, terminate=False)


@fault(56, "connections are exhausted and links break", "no living worker is judged dead")
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
            # A link that breaks finds its slot taken by another application.
            await client.value(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                "where usename = 'app' and application_name not like 'filler%' "
                "and pid % 3 = $1",
                stage.dice.randrange(3),
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
        not set(held) & set(found.duplicated), f"living workers were judged dead: {found}"
    )
    stage.require(all(worker.is_alive for worker in workers), "a worker ended")
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
async def eaten_pool(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client, max_concurrent=30)
    other = await stage.worker(client, app="faultbench.older:app")
    gate = stage.gate()
    greedy = await client.dispatch_many(15, "holding_connections", **gate.input)
    await asyncio.sleep(9)
    for _ in range(10):
        mark = await client.dispatch("work")
        asked = time.monotonic()
        (event,) = await stage.until_started(mark, timeout=30)
        stage.recovered(max(0.0, event.monotonic - asked), within=3)
    gate.open()
    found = await stage.judge(client)
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    stage.require(worker.is_alive and other.is_alive and greedy, "a worker ended")


@fault(25, "the job table is locked (ALTER, LOCK TABLE)", "workers wait and go on; none crashes")
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
    stage.require(all(worker.is_alive for worker in workers), "a worker ended")


@fault(27, "statement timeouts of 50 ms under locks", "statements are retried; no state is lost")
async def statement_timeouts(stage: Stage) -> None:
    client = await stage.client()
    database = client.url.rsplit("/", 1)[1]
    await client.execute(f"alter database {database} set statement_timeout = '50ms'")
    workers = [await stage.worker(client) for _ in range(2)]
    patient = stage.client_of(client.url)
    locker = await client.connect(statement_timeout="0")
    loading = asyncio.create_task(_insisting(stage, patient, 200))
    while not loading.done():
        async with locker.transaction():
            await locker.execute("lock table forge_jobs in share row exclusive mode")
            await asyncio.sleep(stage.dice.uniform(0.05, 0.3))
        await asyncio.sleep(stage.dice.uniform(0.1, 0.5))
    await loading
    await locker.close()
    await stage.judge(client, timeout=60)
    stage.require(all(worker.is_alive for worker in workers), "a worker ended")


async def _insisting(stage: Stage, client: Client, count: int) -> None:
    for _ in range(count):
        await client.insist(
            stage.dice.choice(("work", "flaky")), until_time=time.monotonic() + 60, seconds=0.05
        )


@fault(43, "the disk is full", "dispatch fails, nothing is acknowledged falsely; it recovers")
async def full_disk(stage: Stage) -> None:
    server = await _small_server(stage)
    client = stage.client_of(server.url())
    workers = [await stage.worker(client) for _ in range(2)]
    await client.dispatch_many(50, "work", seconds=0.1)
    ballast = server.folder / "ballast"
    refused = 0
    for _ in range(2):
        _fill_disk(ballast)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                await client.dispatch("work", seconds=0.05, padding="x" * 20_000)
            except LOST:
                refused += 1
                await asyncio.sleep(0.2)
        ballast.unlink()
        freed = time.monotonic()
        await until(server.answers, 60, "the server answers")
        mark = await client.insist("work", until_time=time.monotonic() + 60)
        stage.require(mark, "dispatch does not work after the disk was freed")
        (event,) = await stage.until_started(str(mark), timeout=60)
        stage.recovered(max(0.0, event.monotonic - freed), within=30)
    stage.require(refused, "the disk never was full")
    stage.note(f"{refused} dispatches were refused")
    await stage.judge(client, timeout=60)
    stage.require(all(worker.is_alive for worker in workers), "a worker ended")


async def _small_server(stage: Stage) -> Postgres:
    """A server on a small file system of its own."""
    if os.geteuid() != 0:
        raise CannotRun("mounting a tmpfs needs root")
    folder = stage.folder / "postgres-0"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(folder)]
    if await asyncio.to_thread(subprocess.call, mount):
        raise CannotRun("a tmpfs cannot be mounted here")
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
    "no attempt is used up, no result dropped, no false dead letter",
)
async def platform_faults(stage: Stage) -> None:
    server = await _small_server(stage)
    client = stage.client_of(server.url())
    await client.execute("alter database bench set default_transaction_isolation = 'serializable'")
    workers = [await stage.worker(client) for _ in range(2)]
    dispatcher = stage.client_of(server.url())
    kinds = ("once", "querying", "effect", "work")
    loading = asyncio.create_task(dispatcher.load(45, rate=15, dice=stage.dice, kinds=kinds))
    ballast = server.folder / "ballast"
    for _ in range(2):
        await asyncio.sleep(stage.dice.uniform(3, 5))
        server.configure(default_transaction_read_only="on")
        server.reload()
        await asyncio.sleep(stage.dice.uniform(3, 6))
        server.configure(default_transaction_read_only="off")
        server.reload()
        await asyncio.sleep(stage.dice.uniform(3, 5))
        _fill_disk(ballast)
        await asyncio.sleep(stage.dice.uniform(4, 6))
        ballast.unlink()
    await until(server.answers, 60, "the server answers")
    await loading
    await stage.judge(client, timeout=90)
    await no_attempt_was_used_up(stage, client)
    await check_effects(stage, client)
    stage.require(all(worker.is_alive for worker in workers), "a worker ended")


@fault(
    24,
    "a snapshot is held open for minutes",
    "throughput stays within a stated floor; forge doctor reports it",
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
        "forge doctor " + ("names" if "snapshot" in doctor.log() else "does not name") + " it"
    )
    await client.execute("delete from faultbench_moves")
    waiting = await client.value("select count(*) from forge_jobs where status <> 'completed'")
    stage.require(waiting == 0, f"{waiting} jobs are left")
    stage.outcome.jobs, stage.outcome.lost = (
        await client.value("select count(*) from forge_jobs"),
        0,
    )


FLOOR = 0.4


async def _drain_rate(stage: Stage, client: Client, count: int = 3000) -> float:
    """Jobs a second of one drain, without the history: it would be the bottleneck."""
    await client.execute(
        f"select forge_dispatch('empty', '{{}}', notify => n = {count}) "
        f"from generate_series(1, {count}) as n"
    )
    began = time.monotonic()
    await client.until_final(120)
    return count / (time.monotonic() - began)


@fault(26, "overlapping bulk changes", "no deadlock, or retried; every row is consistent")
async def deadlock_pressure(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client, max_concurrent=20)
    deadlocks = "select deadlocks from pg_stat_database where datname = current_database()"
    before = await client.value(deadlocks)
    for _ in range(300):
        await client.dispatch("failing")
    await client.dispatch_many(200, "work", seconds=0.1)
    await client.until_final(60)
    commands = [
        stage.forge(client, "dlq", "reprocess", "--all", "--rate", "1000/s") for _ in range(2)
    ]
    keyed = [asyncio.create_task(_same_keys(stage, client.url, order)) for order in range(4)]
    answers = await asyncio.gather(*keyed)
    for command in commands:
        await command.ended(60)
    await client.until_final(120)
    found = await client.value(deadlocks) - before
    stage.note(f"{found} deadlocks, {sum(answers)} dispatches by four overlapping batches")
    jobs = await client.value("select count(*) from forge_jobs where job_type = 'empty'")
    stage.require(jobs == KEYS, f"{jobs} jobs for {KEYS} keys")
    stage.require(worker.is_alive, "the worker ended")
    waiting = "select count(*) from forge_jobs where status in ('running', 'claimed')"
    stage.require(await client.value(waiting) == 0, "jobs are stuck")


KEYS = 400


async def _same_keys(stage: Stage, url: str, order: int) -> int:
    """Dispatch the same keys in another order than the others, many in one transaction."""
    client = stage.client_of(url)
    keys = list(range(KEYS))
    stage.dice.shuffle(keys)
    done = 0
    for first in range(0, KEYS, 50):
        part = keys[first : first + 50]
        while True:
            try:
                await client.execute(
                    ";".join(
                        f"select forge_dispatch('empty', '{{}}', idempotency_key => 'k{key}')"
                        for key in part
                    )
                )
                break
            except asyncpg.DeadlockDetectedError:
                # Its own transactions, in its own order: the dispatcher retries.
                await asyncio.sleep(stage.dice.uniform(0, 0.05))
        done += len(part)
    return done
