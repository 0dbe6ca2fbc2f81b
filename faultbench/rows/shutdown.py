"""Workers that shut down."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

from faultbench.client import Client
from faultbench.history import Kind
from faultbench.process import until
from faultbench.registry import fault
from faultbench.stage import Stage
from forge import Config, Forge


@fault(
    12,
    "SIGTERM",
    "no new claims; heartbeats continue; running jobs end; exit code 0",
)
async def drained(stage: Stage) -> None:
    client = await stage.client()
    leaving = await stage.worker(client, shutdown_grace="60s")
    gate = stage.gate()
    running = await client.dispatch_many(5, "work", **gate.input)
    await stage.until_started(*running)
    successor = await stage.worker(client)

    leaving.terminate()
    terminated = time.time()
    later = await client.dispatch_many(20, "work")
    await stage.until_ended(*later)
    # Longer than dead_after: a worker that drains without heartbeats would lose its jobs.
    await asyncio.sleep(8)
    last_heartbeat = await client.value(
        "select extract(epoch from last_heartbeat)::float8 from forge_workers "
        "where id = $1::text::uuid",
        leaving.id,
    )
    stage.require(
        last_heartbeat is not None and last_heartbeat > terminated + 4,
        "no heartbeats while it drains",
    )
    gate.open()

    code = await leaving.ended(30)
    stage.require(code == 0, f"the exit code is {code}")
    found = await stage.judge(client)
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    late = {event.mark for event in stage.starts() if event.pid == leaving.pid} & set(later)
    stage.require(not late, f"claimed after SIGTERM: {late}")
    stage.require(successor.is_alive, "the other worker exited")


@fault(
    13,
    "a second SIGTERM, or the grace period ends",
    "running jobs are released immediately and use no attempt",
    runs=2,
)
async def released(stage: Stage) -> None:
    client = await stage.client()
    grace = stage.rng.choice(("2s", "60s"))
    leaving = await stage.worker(client, shutdown_grace=grace)
    gate = stage.gate()
    kinds = ("work", "work_in_thread", "work_in_process", "once")
    marks = [await client.dispatch(kind, **gate.input) for kind in kinds for _ in range(2)]
    await stage.until_started(*marks)
    successor = await stage.worker(client)

    leaving.terminate()
    if grace == "60s":
        await asyncio.sleep(0.5)
        leaving.terminate()
    stopping = time.monotonic() + (2 if grace == "2s" else 0)
    again = await stage.until_started(*marks, lease=2, timeout=60)
    stage.recovered(max(event.monotonic for event in again) - stopping, within=10)
    gate.open()

    stage.require(await leaving.ended(30) == 0, f"the exit code is {leaving.code}")
    await stage.judge(client, allow=("overlapping",))
    rows = [await client.job(mark) for mark in marks]
    stage.require({row["attempts"] for row in rows} == {1}, "a release used an attempt")
    stopped = [e for e in stage.history.events(Kind.ENDED) if e.detail.get("how") == "stopped"]
    stage.note(f"grace {grace}: {len(stopped)} of {len(marks)} handlers were stopped")
    stage.require(successor.is_alive, "the other worker exited")


@fault(
    61,
    "long jobs occupy every slot",
    "cancel, delete and run-now take effect within 2 s",
)
async def full_slots(stage: Stage) -> None:
    client = await stage.client()
    await stage.worker(client, max_concurrent=3)
    gate = stage.gate()
    running = await client.dispatch_many(3, "work", **gate.input)
    await stage.until_started(*running)
    waiting = [await client.dispatch("work", options=", delay => '1 hour'") for _ in range(2)]

    ids = {mark: (await client.job(mark))["id"] for mark in (*running, *waiting)}
    async with Forge(Config(), database_url=client.url) as app:
        requests: tuple[tuple[str, str, Callable[[UUID], Awaitable[object]], Done], ...] = (
            ("delete", waiting[0], app.delete, lambda row: row is None or _is_cancelled(row)),
            ("run_now", waiting[1], app.run_now, _is_due),
            ("cancel", running[0], app.cancel, _is_cancelled),
        )
        for verb, mark, request, is_done in requests:
            requested = time.monotonic()
            await request(ids[mark])
            await until(partial(_holds, client, mark, is_done), 30, f"{verb} took effect")
            took = time.monotonic() - requested
            stage.note(f"{verb}: {took:.1f} s")
            stage.recovered(took, within=2)
    gate.open()
    await stage.judge(client, allow=("unsuccessful", "lost"), timeout=30)


Done = Callable[[Any], bool]


async def _holds(client: Client, mark: str, is_done: Done) -> bool:
    found = await client.fetch("select * from forge_jobs where input ->> 'mark' = $1", mark)
    return is_done(found[0] if found else None)


def _is_cancelled(row: Any) -> bool:
    return bool(row["status"] == "cancelled")


def _is_due(row: Any) -> bool:
    return bool(row["scheduled_at"].timestamp() <= time.time() + 1)
