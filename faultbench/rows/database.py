"""Servers that restart, crash or turn read-only."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from faultbench.client import Client
from faultbench.outcome import RECOVERY
from faultbench.postgres import Postgres
from faultbench.registry import fault
from faultbench.stage import Stage

KINDS = ("work", "work", "work_in_thread", "once", "effect", "querying", "flaky")


@fault(
    17, "PostgreSQL restarts immediately, without a checkpoint", "nothing is lost; work continues"
)
async def immediate_restarts(stage: Stage) -> None:
    server = await stage.server()

    async def restart() -> None:
        await server.stop("immediate")
        await asyncio.sleep(stage.rng.uniform(0, 4))
        await server.start()

    await under_load(stage, server, restart, times=5)
    await require_no_attempt_used(stage, stage.client_of(server.url()))


@fault(18, "SIGKILL of the postmaster", "acknowledged jobs are kept; work continues")
async def killed_postmaster(stage: Stage) -> None:
    server = await stage.server()

    async def kill() -> None:
        await server.kill()
        await asyncio.sleep(stage.rng.uniform(0, 3))
        await server.start()

    await under_load(stage, server, kill, times=4)


@fault(
    20,
    "the primary turns read-only",
    "no job gets a wrong status, no attempt is used; work continues when it is writable",
)
async def read_only(stage: Stage) -> None:
    server = await stage.server()

    async def turn() -> None:
        server.configure(default_transaction_read_only="on")
        server.reload()
        await asyncio.sleep(stage.rng.uniform(4, 8))
        server.configure(default_transaction_read_only="off")
        server.reload()

    await under_load(stage, server, turn, times=2)
    await require_no_attempt_used(stage, stage.client_of(server.url()))


async def under_load(
    stage: Stage,
    server: Postgres,
    break_it: Callable[[], Awaitable[None]],
    *,
    times: int,
    pauses: tuple[float, float] = (4, 8),
    within: float = RECOVERY,
) -> None:
    """Break the server repeatedly while jobs are dispatched, and check that work continues."""
    client = stage.client_of(server.url())
    for _ in range(2):
        await stage.worker(client)
    dispatcher = stage.client_of(server.url())
    enough = asyncio.Event()
    loading = asyncio.create_task(
        dispatcher.load(times * 10.0, rate=20, rng=stage.rng, kinds=KINDS, enough=enough)
    )
    for _ in range(times):
        await asyncio.sleep(stage.rng.uniform(*pauses))
        await break_it()
        back = time.monotonic()
        first = await stage.until_started_since(back)
        stage.recovered(first.monotonic - back, within=within)
    enough.set()
    await loading
    await stage.judge(client, timeout=90)
    await check_effects(stage, client)


async def check_effects(stage: Stage, client: Client) -> None:
    """Check that each effect written with its completion exists once."""
    twice = await client.fetch(
        "select mark from faultbench_effects where mark like 'effect%' "
        "group by mark having count(*) > 1"
    )
    stage.require(not twice, f"effects were written twice: {[row['mark'] for row in twice[:3]]}")


async def require_no_attempt_used(stage: Stage, client: Client) -> None:
    spent = await client.fetch(
        "select input ->> 'mark' as mark, attempts, last_error from forge_jobs "
        "where job_type <> 'flaky' and attempts > 1"
    )
    examples = [(row["mark"], row["attempts"], row["last_error"]) for row in spent[:2]]
    stage.require(not spent, f"{len(spent)} jobs used attempts: {examples}")
