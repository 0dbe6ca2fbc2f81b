"""Notifications that are lost, spoofed or unavailable."""

import asyncio
import os
import shutil
import time
from urllib.parse import urlsplit

import asyncpg

from faultbench.client import Client
from faultbench.history import Kind
from faultbench.outcome import CannotRun
from faultbench.postgres import free_port
from faultbench.process import Process, until
from faultbench.registry import fault
from faultbench.stage import Stage

# With the default settings, a worker without notifications polls at least every 2 s.
PICK_UP = 2.0
# For the claim, the start of the handler and a busy machine.
MARGIN = 1.0
LISTENING = (
    "select count(*) from pg_stat_activity "
    "where datname = current_database() and query ilike 'listen %'"
)
END_LISTENERS = (
    "select count(pg_terminate_backend(pid)) from pg_stat_activity "
    "where datname = current_database() and query ilike 'listen %'"
)


async def _pick_up(stage: Stage, client: Client) -> None:
    """Dispatch a job and record how long it takes to start."""
    mark = await client.dispatch("work")
    acknowledged = stage.history.events(Kind.ACKNOWLEDGED)[-1].monotonic
    (started,) = await stage.until_started(mark, timeout=30)
    stage.recovered(started.monotonic - acknowledged, within=PICK_UP + MARGIN)


@fault(
    14,
    "the LISTEN backend is terminated",
    "jobs are picked up within a poll interval; the worker listens again",
    runs=2,
)
async def ended_listener(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client)
    await until(lambda: client.value(LISTENING), 30, "the worker listens")
    for _ in range(3):
        stage.require(await client.value(END_LISTENERS), "the worker had no listener")
        for _ in range(5):
            await _pick_up(stage, client)
        await until(lambda: client.value(LISTENING), 15, "the worker listens again")
    await stage.judge(client)
    stage.require(worker.is_alive, "the worker exited")


@fault(
    15,
    "the LISTEN connection dies silently",
    "jobs are picked up within a poll interval; the worker listens again",
    runs=2,
)
async def silent_listener(stage: Stage) -> None:
    client = await stage.client()
    proxy = await stage.proxy(client.url)
    worker = await stage.worker(client, url=proxy.url)
    await until(lambda: client.value(LISTENING), 30, "the worker listens")
    # After the first heartbeat, the worker knows whether notifications arrive.
    await asyncio.sleep(3)
    stage.require(proxy.silence(listeners_only=True) == 1, "the worker had no listener")
    for _ in range(8):
        await _pick_up(stage, client)
        await asyncio.sleep(0.5)
    await until(lambda: proxy.listeners, 30, "the worker listens again")
    await stage.judge(client)
    stage.require(worker.is_alive, "the worker exited")


@fault(
    16,
    "no notifications behind a transaction pooler, which restarts",
    "everything works by polling; nothing is lost",
)
async def pooler(stage: Stage) -> None:
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/sbin")
    if program is None:
        raise CannotRun("the package pgbouncer is not installed")
    server = await stage.server()
    client = stage.client_of(server.url())
    port = free_port()
    bouncer = await _pgbouncer(stage, program, server.url(), port)
    url = f"postgresql://{urlsplit(server.url()).username}@127.0.0.1:{port}/bench"
    for _ in range(2):
        await stage.worker(client, url=url, env={"FORGE_DATABASE_POOLER": "true"})
    through = stage.client_of(url)
    loading = asyncio.create_task(
        through.load(25, rate=20, rng=stage.rng, kinds=("work", "effect", "flaky"))
    )
    for _ in range(3):
        await asyncio.sleep(stage.rng.uniform(4, 6))
        bouncer.kill()
        await asyncio.sleep(stage.rng.uniform(0.2, 1.5))
        bouncer = await _pgbouncer(stage, program, server.url(), port)
        back = time.monotonic()
        stage.recovered((await stage.until_started_since(back)).monotonic - back, within=10)
    await loading
    await stage.judge(client, timeout=60)
    listening = await client.value(LISTENING)
    stage.require(listening == 0, "a worker behind the pooler listens")
    await _check_effects(stage, client)


async def _check_effects(stage: Stage, client: Client) -> None:
    """Check that each effect in the database exists once."""
    wrong = await client.fetch(
        "select mark from faultbench_effects group by mark having count(*) > 1"
    )
    stage.require(not wrong, f"effects were written twice: {[row['mark'] for row in wrong[:3]]}")


async def _pgbouncer(stage: Stage, program: str, server_url: str, port: int) -> Process:
    parts = urlsplit(server_url)
    config = stage.folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\nbench = host=127.0.0.1 port={parts.port} user={parts.username}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\ndefault_pool_size = 8\nmax_client_conn = 200\n"
    )
    config.chmod(0o644)
    # pgbouncer refuses to run as root and switches the account itself.
    account = ["-u", "postgres"] if os.geteuid() == 0 else []
    process = stage.spawn(program, *account, config)
    await until(lambda: _accepts(port), 15, "pgbouncer accepts connections")
    return process


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


@fault(
    57,
    "spoofed and garbage notifications",
    "a notification is a hint: no handler stops, no traceback is logged",
)
async def spoofed(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client)
    gate = stage.gate()
    marks = await client.dispatch_many(5, "work", **gate.input)
    await stage.until_started(*marks)
    role = f"stranger_{stage.rng.randrange(10**9)}"
    await client.execute(f"create role {role} login")
    parts = urlsplit(client.url)
    stranger = await asyncpg.connect(
        f"postgresql://{role}@{parts.hostname}:{parts.port}{parts.path}"
    )
    try:
        own = f"forge_worker_{worker.id.replace('-', '')}"
        for mark in marks:
            job = await client.job(mark)
            for text in (f"{job['id']} {job['lease']}", f"{job['id'].hex} {job['lease']}"):
                await stranger.execute("select pg_notify($1, $2)", own, text)
        for channel in (own, "forge_wake", "forge_changes"):
            for text in ("", "x", "1 2 3", "\u202e", "{" * 50, f"{'f' * 32} 1", "00 -1", "9" * 400):
                await stranger.execute("select pg_notify($1, $2)", channel, text)
    finally:
        await stranger.close()
    await asyncio.sleep(5)
    gate.open()

    found = await stage.judge(client)
    stage.require(not found.stopped, f"handlers were stopped: {found.stopped}")
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    stage.require(worker.is_alive, "the worker exited")
    stage.require("Traceback" not in worker.log(), "a traceback was logged")
    await client.execute(f"drop role {role}")
