"""Networks that lose responses, fail silently or cut a worker off."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from faultbench.client import Client
from faultbench.outcome import RECOVERY
from faultbench.postgres import Postgres
from faultbench.proxy import Mode
from faultbench.registry import fault
from faultbench.rows.database import check_effects, require_no_attempt_used
from faultbench.rows.failover import fail_over, replicated
from faultbench.rows.namespaces import TwoNamespaces
from faultbench.stage import Stage, Worker
from forge import Config, DatabaseUnavailable, Forge

Act = Callable[[], Awaitable[None]]


@fault(
    21,
    "the response to COMMIT is lost",
    "one job per idempotency key; completions and effects count once",
    runs=2,
)
async def lost_answers(stage: Stage) -> None:
    client = await stage.client()
    proxy = await stage.proxy(client.url)
    through = stage.client_of(proxy.url)
    for _ in range(5):
        proxy.cut_after_commit("forge_dispatch")
        mark = await through.dispatch_until_acknowledged("work", until_time=time.monotonic() + 30)
        stage.require(mark, "the dispatch was never acknowledged")
    await _through_the_library(stage, proxy.url)
    stage.require(proxy.cuts_made >= 5, "no response was lost")

    workers = await stage.proxy(client.url)
    await stage.worker(client, url=workers.url)
    for _ in range(4):
        workers.cut_after_commit("set status = 'completed'")
        await client.dispatch_many(5, "work", seconds=0.1)
        await client.until_final(60)
        workers.cut_after_commit("faultbench_effects")
        await client.dispatch_many(3, "effect")
        await client.until_final(60)
    found = await stage.judge(client)
    # A plain completion is retried and finds that it was already committed.
    plain = [mark for mark in found.duplicated if not mark.startswith("effect")]
    stage.require(not plain, f"completed jobs ran again: {plain}")
    await check_effects(stage, client)
    stage.note(f"{proxy.cuts_made + workers.cuts_made} responses were lost")
    stage.require(workers.cuts_made >= 6, f"only {workers.cuts_made} acks were cut")


async def _through_the_library(stage: Stage, url: str) -> None:
    """Dispatch with a key by the public API, and repeat what was not acknowledged."""
    client = await stage.client()
    async with Forge(Config(), database_url=url) as app:
        for number in range(3):
            ids = set()
            for _ in range(3):
                try:
                    handle = await app.dispatch("empty", {}, idempotency_key=f"library-{number}")
                    ids.add(handle.id)
                except DatabaseUnavailable:
                    continue
            stage.require(len(ids) == 1, f"{len(ids)} jobs for one key")
    made = "select count(*) from forge_jobs where idempotency_key like 'library-%'"
    stage.require(await client.value(made) == 3, "a key made two jobs")


@fault(
    52,
    "connections die without FIN or RST",
    "claims, acks and new attempts continue within 10 s; no handler hangs on a dead connection",
    runs=2,
)
async def silent_death(stage: Stage) -> None:
    if stage.run == 2:
        await frozen_primary(stage)
        return
    client = await stage.client()
    proxy = await stage.proxy(client.url)
    worker = await stage.worker(client, url=proxy.url)
    # Fill the handlers' pool with connections that can die.
    await client.dispatch_many(8, "querying", seconds=0.3)
    await client.until_final(30)

    stage.require(proxy.silence() >= 4, "the worker has no connections")
    silent = time.monotonic()

    marks = []
    for _ in range(20):
        marks.append(await client.dispatch("querying", seconds=0.0))
        marks.append(await client.dispatch("work"))
        await asyncio.sleep(0.25)
    started = await stage.until_started(*marks, timeout=90)
    await client.until_final(90)
    last = await client.value(
        "select extract(epoch from max(completed_at))::float8 from forge_jobs"
    )
    first = next(event for event in started if event.monotonic > silent)
    stage.recovered(first.monotonic - silent, within=RECOVERY)
    dispatched = silent + 5
    ended = time.monotonic() - (time.time() - last)
    stage.recovered(max(0.0, ended - dispatched), within=RECOVERY)
    await stage.judge(client)
    await require_no_attempt_used(stage, client)
    stage.require(worker.is_alive, "the worker exited")


async def frozen_primary(stage: Stage) -> None:
    """Freeze the primary: its kernel still acknowledges data, but no response ever comes."""
    primary, standby, proxy = await replicated(stage)
    before = stage.client_of(primary.url())
    workers = [await stage.worker(before, url=proxy.url) for _ in range(2)]
    await before.dispatch_many(8, "querying", seconds=0.3)
    await before.until_final(30)
    await before.dispatch_many(10, "work", seconds=2)

    primary.pause()
    promoted = await fail_over(standby, proxy)
    after = stage.client_of(standby.url())
    marks = []
    for _ in range(15):
        marks.append(await after.dispatch("querying", seconds=0.0))
        marks.append(await after.dispatch("work"))
        await asyncio.sleep(0.2)
    started = await stage.until_started(*marks, timeout=90)
    first = min(event.monotonic for event in started)
    stage.recovered(first - promoted, within=RECOVERY)
    await stage.judge(after, timeout=90)
    await require_no_attempt_used(stage, after)
    stage.require(all(worker.is_alive for worker in workers), "a worker exited")
    stage.note("run 2: SIGSTOP of the primary, then promotion of its standby")


@fault(
    53,
    "a multi-host DSN whose first host hangs",
    "the second host is reached within connect_timeout",
)
async def hung_first_host(stage: Stage) -> None:
    client = await stage.client()
    hung = await asyncio.start_server(_never_respond, "127.0.0.1", 0)
    port = hung.sockets[0].getsockname()[1]
    second = client.url.split("@")[1]
    url = f"postgresql://bench@127.0.0.1:{port},{second}?target_session_attrs=read-write"
    try:
        began = time.monotonic()
        env = {"FORGE_DATABASE_CONNECT_TIMEOUT": "3s"}
        worker = await stage.worker(client, url=url, env=env, ready=False)
        mark = await client.dispatch("work")
        (event,) = await stage.until_started(mark, timeout=90)
        stage.recovered(event.monotonic - began)
        config = Config.model_validate({"database": {"connect_timeout": "3s"}})
        app = Forge(config, database_url=url)
        began = time.monotonic()
        await app.dispatch("empty", {})
        took = time.monotonic() - began
        await app.close()
        stage.note(f"a dispatcher needed {took:.1f} s")
        stage.require(took < 3 + 2, f"a dispatcher needed {took:.1f} s with connect_timeout 3 s")
        stage.require(worker.is_alive, "the worker exited")
        await stage.judge(client)
    finally:
        hung.close()


async def _never_respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@fault(
    55,
    "a worker is cut off silently for longer than dead_after",
    "its attempts stop before others start: no overlap; a restart stops no handler",
    runs=2,
)
async def partition(stage: Stage) -> None:
    if stage.run == 2:
        await _in_namespaces(stage)
        return
    server = await stage.server()
    client = stage.client_of(server.url())
    proxy = await stage.proxy(client.url)
    worker = await stage.worker(client, url=proxy.url)

    async def cut() -> None:
        await proxy.set_mode(Mode.DROP)

    async def heal() -> None:
        await proxy.set_mode(Mode.PASS)
        proxy.reset()

    await _cut_off(stage, client, worker, cut, heal)
    # The proxy accepts and closes connections while the server is down, which is not a refusal.
    worker.terminate()
    await worker.ended()
    await _restart_stops_nothing(stage, client, server)


async def _in_namespaces(stage: Stage) -> None:
    """Repeat the partition with the kernel's network instead of a proxy."""
    network = await TwoNamespaces.open(stage)
    client = stage.client_of(network.server.url())
    worker = await stage.worker(client, url=network.url, prefix=network.worker_prefix)
    await _cut_off(stage, client, worker, network.cut, network.heal)
    stage.note("run 2: network namespaces, packets to the worker are dropped (blackhole route)")


async def _cut_off(stage: Stage, client: Client, worker: Worker, cut: Act, heal: Act) -> None:
    """Cut the network of a worker until its jobs run elsewhere."""
    marks = [
        *(await client.dispatch_many(3, "work", seconds=40)),
        *(await client.dispatch_many(2, "work_in_thread", seconds=40)),
        *(await client.dispatch_many(2, "work_in_process", seconds=40)),
    ]
    await stage.until_started(*marks)
    successor = await stage.worker(client)

    began = time.monotonic()
    await cut()
    again = await stage.until_started(*marks, lease=2, timeout=60)
    stage.recovered(max(event.monotonic for event in again) - began)
    await asyncio.sleep(5)
    await heal()
    found = await stage.judge(client, timeout=120)
    stage.note(f"cut off: {found.overlap:.2f} s of overlap")
    stage.require(worker.is_alive and successor.is_alive, "a worker exited")


async def _restart_stops_nothing(stage: Stage, client: Client, server: Postgres) -> None:
    """Check that an outage longer than dead_after, with refused connections, stops no handler."""
    stopped_before = {e.mark for e in stage.starts()}
    marks = await client.dispatch_many(6, "work", seconds=25)
    await stage.until_started(*marks)
    await server.stop("fast")
    await asyncio.sleep(12)
    await server.start()
    found = await stage.judge(client, timeout=90)
    stage.note("an outage of 12 s followed")
    stopped = set(found.stopped) - stopped_before
    stage.require(not stopped, f"a restart stopped handlers: {stopped}")
    twice = set(found.duplicated) & set(marks)
    stage.require(not twice, f"a restart made jobs run twice: {twice}")
