"""Attempts that outlive their lease."""

import asyncio
import time
import uuid
from typing import Any

from faultbench.client import Client
from faultbench.history import Kind
from faultbench.outcome import RECOVERY
from faultbench.process import until
from faultbench.registry import fault
from faultbench.stage import Stage


@fault(
    3,
    "SIGSTOP past the lease, then SIGCONT",
    "every write of the stale attempt is rejected; the attempt is stopped",
    runs=2,
)
async def zombie(stage: Stage) -> None:
    client = await stage.client()
    paused = await stage.worker(client)
    gate = stage.gate()
    plain = await client.dispatch_many(3, "work", **gate.input)
    reporting_gate = stage.gate("reporting")
    reporting = await client.dispatch_many(2, "reporting", **reporting_gate.input)
    effects = await client.dispatch_many(2, "effect", **gate.input)
    held = [*plain, *reporting, *effects]
    await stage.until_started(*held)

    paused.pause()
    successor = await stage.worker(client)
    await stage.until_started(*held, lease=2)
    gate.open(lease=1)
    paused.resume()
    # The stale attempts run to their end while the gate holds the new ones.
    await until(lambda: _ended(stage, 1) >= len(held), 30, "the stale attempts have ended")
    await stage.until_alive(client, paused, since=stage.history.events(Kind.RESUMED)[0].wall)
    gate.open()
    reporting_gate.open()

    found = await stage.judge(client, allow=("overlapping",))
    stage.require(successor.is_alive and paused.is_alive, "a worker exited")
    rows = [await client.job(mark) for mark in held]
    stage.require({row["lease"] for row in rows} == {2}, f"completed under other leases: {rows}")
    effect_rows = await client.fetch("select mark, lease from faultbench_effects")
    kept = sorted((row["mark"], row["lease"]) for row in effect_rows)
    stage.require(
        kept == sorted((mark, 2) for mark in effects), f"effects of stale attempts: {kept}"
    )
    stopped = {
        event.mark
        for event in stage.history.events(Kind.ENDED)
        if event.lease == 1 and event.detail.get("how") == "stopped"
    }
    # Their gate stays closed: only the engine can stop them.
    stage.require(set(reporting) <= stopped, f"stale attempts were not stopped: {stopped}")
    stage.require(
        found.overlap < 30,
        f"stale attempts ran for {found.overlap:.1f} s concurrently with the new ones",
    )


@fault(4, "a rescue races completions", "exactly one of them wins; the row is consistent", runs=2)
async def rescue_races_completion(stage: Stage) -> None:
    client = await stage.client()
    pace: dict[str, Any] = {"heartbeat_interval": "1s", "dead_after": "4s"}
    raced = await stage.worker(client, **pace, max_concurrent=30)
    await stage.worker(client, app="faultbench.apps.older:app", **pace)
    for _ in range(4):
        # They end around the time when the paused worker counts as dead.
        for _ in range(6):
            await client.dispatch("work", seconds=stage.rng.uniform(1, 5))
        await asyncio.sleep(stage.rng.uniform(0.2, 0.5))
        raced.pause()
        await asyncio.sleep(stage.rng.uniform(3.5, 5.5))
        raced.resume()
        await asyncio.sleep(1)
    found = await stage.judge(client, allow=("overlapping",))
    stage.note(f"{len(found.duplicated)} of {found.jobs} were rescued first")


@fault(
    5,
    "a worker restarts under the same id",
    "its old jobs are rescued; the old process is fenced",
    runs=2,
)
async def same_id(stage: Stage) -> None:
    client = await stage.client()
    worker_id = str(uuid.uuid4())
    first = await stage.worker(client, id=worker_id)
    gate = stage.gate()
    marks = await client.dispatch_many(5, "work", **gate.input)
    await stage.until_started(*marks)
    first.pause()
    # The new attempts end immediately; the old ones wait until their process resumes.
    gate.open(lease=2)

    await stage.worker(client, id=worker_id)
    alive = time.monotonic()
    again = await stage.until_started(*marks, lease=2, timeout=30)
    stage.recovered(max(event.monotonic for event in again) - alive, within=RECOVERY)
    gate.open(lease=1)
    first.resume()
    await until(lambda: _ended(stage, 1) == len(marks), 30, "the old attempts have ended")
    gate.open()

    await stage.judge(client, allow=("overlapping",))
    rows = [await client.job(mark) for mark in marks]
    stage.require({row["lease"] for row in rows} == {2}, "an old attempt completed a job")


@fault(
    63,
    "a worker claims its own rescued job again",
    "one live attempt per process; the older one is stopped",
    runs=2,
)
async def claimed_again(stage: Stage) -> None:
    client = await stage.client()
    sleeper = await stage.worker(client)
    gate = stage.gate()
    marks = [
        *(await client.dispatch_many(3, "work", **gate.input)),
        *(await client.dispatch_many(2, "reporting", **gate.input)),
    ]
    await stage.until_started(*marks)
    # This worker rescues but cannot claim: it does not have the type.
    await stage.worker(client, app="faultbench.apps.older:app")
    sleeper.pause()
    await until(lambda: _all_rescued(client), 40, "the jobs were rescued")
    sleeper.resume()
    resumed = time.monotonic()
    again = await stage.until_started(*marks, lease=2, timeout=60)
    stage.recovered(max(event.monotonic for event in again) - resumed)
    await asyncio.sleep(3)
    gate.open()
    found = await stage.judge(client, allow=("overlapping",))
    stage.require(
        found.overlap < len(marks) * 1.0,
        f"the older attempts ran for {found.overlap:.1f} s concurrently with the newer ones",
    )
    stage.require(sleeper.is_alive, "the worker exited")


async def _all_rescued(client: Client) -> bool:
    return bool(await client.value("select bool_and(status = 'retry') from forge_jobs"))


def _ended(stage: Stage, lease: int) -> int:
    return len({event.mark for event in stage.history.events(Kind.ENDED) if event.lease == lease})
