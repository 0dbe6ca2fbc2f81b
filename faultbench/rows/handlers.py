"""Handlers that kill, hang or block their process."""

import asyncio
from typing import Any

from faultbench.outcome import RECOVERY
from faultbench.registry import fault
from faultbench.stage import Stage


@fault(
    8,
    "a job kills its process (_exit, SEGV, SIGKILL)",
    "it is dead-lettered; the other jobs complete",
)
async def poison(stage: Stage) -> None:
    client = await stage.client()
    supervisor = await stage.worker(client, "--processes=2", ready=False)
    gate = stage.gate()
    neighbours = await client.dispatch_many(10, "work", **gate.input)
    pills = [
        await client.dispatch("poison", how=how) for how in ("exit", "segmentation fault", "kill")
    ]
    for pill in pills:
        row = await client.until_status(pill, "dead_letter", "failed", "completed", timeout=120)
        stage.require(
            row["status"] == "dead_letter", f"{pill} is {row['status']}: {row['last_error']}"
        )
    gate.open()
    found = await stage.judge(client, allow=("unsuccessful",))
    stage.require(
        set(found.unsuccessful) == set(pills),
        f"other jobs were dead-lettered: {found.unsuccessful}",
    )
    stage.require(supervisor.is_alive, "the supervisor exited")
    buried = {row["mark"] for row in await client.fetch(_LETTERS) if row["mark"]}
    stage.require(buried == set(pills), f"dead letters: {buried}, other jobs {len(neighbours)}")


_LETTERS = (
    "select job.input ->> 'mark' as mark from forge_dead_letters as letter "
    "join forge_jobs as job on job.id = letter.job_id"
)


@fault(
    9,
    "a handler hangs while its worker sends heartbeats",
    "it is stopped at its timeout; the slot is free again",
)
async def hanging(stage: Stage) -> None:
    client = await stage.client()
    worker = await stage.worker(client, max_concurrent=3)
    # The start of a child process counts toward the timeout of its first job.
    await client.dispatch("work_in_process")
    await client.until_final(60)
    kinds = ("hanging", "hanging_in_thread", "hanging_in_process")
    hung = [await client.dispatch(kind) for kind in kinds]
    started = await stage.until_started(*hung)
    for mark, start in zip(hung, started, strict=True):
        row = await client.until_status(mark, "dead_letter", timeout=30)
        took = row["failed_at"].timestamp() - start.wall
        stage.recovered(took - 5, within=RECOVERY)
    after = await client.dispatch_many(3, "work", seconds=0.2)
    await client.until_final(30)
    found = await stage.judge(client, allow=("unsuccessful",))
    stage.require(set(found.unsuccessful) == set(hung), f"also failed: {found.unsuccessful}")
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    stage.require(worker.is_alive and after, "the worker exited")


@fault(
    10,
    "a handler blocks the event loop for 3 × dead_after",
    "its job is not rescued; nothing runs twice",
)
async def blocked_loop(stage: Stage) -> None:
    client = await stage.client()
    pace: dict[str, Any] = {"heartbeat_interval": "1s", "dead_after": "4s"}
    workers = [await stage.worker(client, **pace) for _ in range(2)]
    # A worker declares others dead only after its own heartbeats were steady for a while.
    await asyncio.sleep(6)
    mark = await client.dispatch("blocking", seconds=12)
    (start,) = await stage.until_started(mark)
    found = await stage.judge(client)
    stage.require(not found.duplicated, f"ran twice: {found.duplicated}")
    (blocked,) = [worker for worker in workers if worker.pid == start.pid]
    stage.require("loop" in blocked.log(), "the worker did not warn that its loop was blocked")


@fault(
    11,
    "C code holds the interpreter lock past dead_after",
    "documented: the job runs elsewhere, the late result is rejected",
)
async def held_gil(stage: Stage) -> None:
    client = await stage.client()
    pace: dict[str, Any] = {"heartbeat_interval": "1s", "dead_after": "4s"}
    workers = [await stage.worker(client, **pace) for _ in range(2)]
    mark = await client.dispatch("holding_the_gil", seconds=14)
    found = await stage.judge(client, allow=("overlapping",), timeout=90)
    row = await client.job(mark)
    stage.note(
        f"ran {len(stage.starts(mark))} times, completed under lease {row['lease']}; "
        'docs/why/delivery.md says to run such code with isolation="process"'
    )
    stage.require(
        all(worker.is_alive for worker in workers) and not found.stale,
        "the late result was accepted",
    )
