"""Jobs for the fault tests: some wait at a gate, some hang, some kill their process."""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forge import JobContext, StaleAttempt, Transient, job
from tests.faults.apps.reporting import recorded, report
from tests.faults.kit.process import until, wait_until

GATE_TIMEOUT = 300


def open_for(ctx: JobContext, input: dict[str, Any]) -> Callable[[], bool]:
    """Whether the gate is open for all attempts or for this one."""
    gates = (Path(input["gate"]), Path(f"{input['gate']}.{ctx.lease}"))
    return lambda: any(gate.exists() for gate in gates)


@job
async def quick(ctx: JobContext) -> str:
    with recorded(ctx):
        return "done"


@job(name="only_in_the_new_build")
async def newer(ctx: JobContext) -> str:
    with recorded(ctx):
        return "done"


@job
async def gated(ctx: JobContext, input: dict[str, Any]) -> int:
    with recorded(ctx):
        await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
    return ctx.lease


@job
async def logged_and_gated(ctx: JobContext, input: dict[str, Any]) -> int:
    with recorded(ctx):
        ctx.progress(10, "about to wait")
        ctx.log.info("waiting at the gate", lease=ctx.lease)
        await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
    return ctx.lease


@job
def gated_in_thread(ctx: JobContext, input: dict[str, Any]) -> int:
    with recorded(ctx):
        wait_until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
    return ctx.lease


@job(isolation="process")
async def gated_in_process(ctx: JobContext, input: dict[str, Any]) -> int:
    with recorded(ctx):
        await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
    return ctx.lease


@job
async def ignores_cancel(ctx: JobContext, input: dict[str, Any]) -> int:
    """Continue until the gate opens, however often the handler is cancelled."""
    is_open = open_for(ctx, input)
    with recorded(ctx):
        while not is_open():
            try:
                await until(is_open, GATE_TIMEOUT, "the gate opens")
            except asyncio.CancelledError:
                report("ignored cancel", lease=ctx.lease)
    return ctx.lease


@job
async def beating(ctx: JobContext, input: dict[str, Any]) -> None:
    """Send heartbeats until the attempt is stale."""
    is_open = open_for(ctx, input)

    async def beat() -> bool:
        await ctx.heartbeat()
        return is_open()

    with recorded(ctx):
        try:
            await until(beat, GATE_TIMEOUT, "the gate opens")
        # The worker may notice first and cancel the handler.
        except (StaleAttempt, asyncio.CancelledError) as error:
            report("stale", job=ctx.job_id, lease=ctx.lease, error=repr(error))
            raise


@job(isolation="process", max_attempts=1)
async def beating_in_process(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx):
        await ctx.heartbeat()
        await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")


@job
async def blocking(ctx: JobContext, input: dict[str, Any]) -> None:
    """Block the worker's event loop, as code without an `await` does."""
    with recorded(ctx):
        time.sleep(input["seconds"])  # noqa: ASYNC251 - blocking is its purpose


@job(timeout="500ms", max_attempts=1)
async def hanging(ctx: JobContext) -> None:
    with recorded(ctx):
        await asyncio.Event().wait()


@job(timeout="500ms", max_attempts=1)
async def stubborn(ctx: JobContext) -> None:
    """Ignore the first cancellation."""
    with recorded(ctx):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            report("ignored cancel", lease=ctx.lease)
            await asyncio.Event().wait()


@job(timeout="500ms", max_attempts=1)
def hanging_in_thread(ctx: JobContext) -> None:
    with recorded(ctx):
        wait_until(lambda: False, GATE_TIMEOUT, "it is stopped")


@job(timeout="500ms", max_attempts=1, isolation="process")
def hanging_in_process(ctx: JobContext) -> None:
    """Hang in C code, which only a signal ends."""
    with recorded(ctx):
        time.sleep(GATE_TIMEOUT)


@job(isolation="process")
def forking_in_process(ctx: JobContext) -> None:
    """Fork a process and wait for it."""
    with recorded(ctx):
        forked = multiprocessing.get_context("fork").Process(
            target=time.sleep, args=(GATE_TIMEOUT,)
        )
        forked.start()
        report("forked", pids=[os.getpid(), forked.pid])
        forked.join()


@job
def stuck_in_thread(ctx: JobContext) -> None:
    """Hang in C code in a thread, where no exception can be raised."""
    with recorded(ctx):
        time.sleep(GATE_TIMEOUT)


@job
async def poison(ctx: JobContext, input: dict[str, Any]) -> None:
    """Kill its own process once other jobs are running in it."""
    with recorded(ctx):
        await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")
        match input["how"]:
            case "exit":
                os._exit(7)
            case "segmentation fault":
                ctypes.string_at(0)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)


@job(max_attempts=2)
async def failing(ctx: JobContext) -> None:
    raise Transient("it always fails")


@job(timeout="1s", max_attempts=1)
async def sleeping_in_transaction(ctx: JobContext) -> None:
    """Time out in the middle of a statement."""
    with recorded(ctx):
        async with ctx.db.acquire() as connection, connection.transaction():
            await connection.execute("insert into effects values ('half done')")
            await connection.execute("select pg_sleep(600)")


@job(timeout="1s", max_attempts=1)
async def hanging_in_transaction(ctx: JobContext) -> None:
    """Time out between two statements of the transaction that completes the job."""
    with recorded(ctx):
        async with ctx.complete_in_transaction() as connection:
            await connection.execute("insert into effects values ('half done')")
            await asyncio.Event().wait()


@job
async def once_in_transaction(ctx: JobContext, input: dict[str, Any]) -> None:
    """Write an effect in the transaction that completes the job, then wait at the gate."""
    with recorded(ctx):
        async with ctx.complete_in_transaction() as connection:
            await connection.execute("insert into effects values ($1)", f"lease {ctx.lease}")
            await until(open_for(ctx, input), GATE_TIMEOUT, "the gate opens")


@job(max_attempts=1)
async def asking(ctx: JobContext, input: dict[str, Any]) -> None:
    """Run a statement that does not end, unless the gate is open."""
    with recorded(ctx):
        if open_for(ctx, input)():
            return
        async with ctx.db.acquire() as connection:
            if input["in_transaction"]:
                async with connection.transaction():
                    await connection.execute("select pg_sleep(600)")
            await connection.execute("select pg_sleep(600)")
