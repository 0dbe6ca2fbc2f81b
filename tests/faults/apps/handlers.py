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
from tests.faults.apps.telling import say, told
from tests.faults.kit.process import until, wait_until

PATIENCE = 300


def open_for(ctx: JobContext, input: dict[str, Any]) -> Callable[[], bool]:
    """Whether the gate is open, for all or for this attempt."""
    gates = (Path(input["gate"]), Path(f"{input['gate']}.{ctx.lease}"))
    return lambda: any(gate.exists() for gate in gates)


@job
async def quick(ctx: JobContext) -> str:
    with told(ctx):
        return "done"


@job(name="only_in_the_new_build")
async def newer(ctx: JobContext) -> str:
    with told(ctx):
        return "done"


@job
async def gated(ctx: JobContext, input: dict[str, Any]) -> int:
    with told(ctx):
        await until(open_for(ctx, input), PATIENCE, "the gate opens")
    return ctx.lease


@job
def gated_in_thread(ctx: JobContext, input: dict[str, Any]) -> int:
    with told(ctx):
        wait_until(open_for(ctx, input), PATIENCE, "the gate opens")
    return ctx.lease


@job(isolation="process")
async def gated_in_process(ctx: JobContext, input: dict[str, Any]) -> int:
    with told(ctx):
        await until(open_for(ctx, input), PATIENCE, "the gate opens")
    return ctx.lease


@job
async def deaf_to_cancel(ctx: JobContext, input: dict[str, Any]) -> int:
    """Goes on until its gate opens, however often it is cancelled."""
    is_open = open_for(ctx, input)
    with told(ctx):
        while not is_open():
            try:
                await until(is_open, PATIENCE, "the gate opens")
            except asyncio.CancelledError:
                say("would not stop", lease=ctx.lease)
    return ctx.lease


@job
async def beating(ctx: JobContext, input: dict[str, Any]) -> None:
    """Says that it lives until it learns that it does not."""
    is_open = open_for(ctx, input)

    async def lives_on() -> bool:
        await ctx.heartbeat()
        return is_open()

    with told(ctx):
        try:
            await until(lives_on, PATIENCE, "the gate opens")
        # Its worker may learn it first, and stop it.
        except (StaleAttempt, asyncio.CancelledError) as error:
            say("stale", job=ctx.job_id, lease=ctx.lease, error=repr(error))
            raise


@job(isolation="process", max_attempts=1)
async def beating_in_process(ctx: JobContext, input: dict[str, Any]) -> None:
    with told(ctx):
        await ctx.heartbeat()
        await until(open_for(ctx, input), PATIENCE, "the gate opens")


@job
async def blocking(ctx: JobContext, input: dict[str, Any]) -> None:
    """Holds up the loop of its worker, as code that forgot an `await` does."""
    with told(ctx):
        time.sleep(input["seconds"])  # noqa: ASYNC251 - blocking is what it is for


@job(timeout="500ms", max_attempts=1)
async def hanging(ctx: JobContext) -> None:
    with told(ctx):
        await asyncio.Event().wait()


@job(timeout="500ms", max_attempts=1)
async def stubborn(ctx: JobContext) -> None:
    """Does not listen the first time it is asked to stop."""
    with told(ctx):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            say("would not stop", lease=ctx.lease)
            await asyncio.Event().wait()


@job(timeout="500ms", max_attempts=1)
def hanging_in_thread(ctx: JobContext) -> None:
    with told(ctx):
        wait_until(lambda: False, PATIENCE, "it is stopped")


@job(timeout="500ms", max_attempts=1, isolation="process")
def hanging_in_process(ctx: JobContext) -> None:
    """Hangs in C, where nothing but a signal ends it."""
    with told(ctx):
        time.sleep(PATIENCE)


@job(isolation="process")
def forking_in_process(ctx: JobContext) -> None:
    """Waits for a process that it forked."""
    with told(ctx):
        forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(PATIENCE,))
        forked.start()
        say("forked", pids=[os.getpid(), forked.pid])
        forked.join()


@job
def stuck_in_thread(ctx: JobContext) -> None:
    """A thread that no exception reaches, since it never comes back from C."""
    with told(ctx):
        time.sleep(PATIENCE)


@job
async def poison(ctx: JobContext, input: dict[str, Any]) -> None:
    """Kills the process it runs in, once its neighbours are there to be hit."""
    with told(ctx):
        await until(open_for(ctx, input), PATIENCE, "the gate opens")
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
    """Is in the middle of a statement when its time is over."""
    with told(ctx):
        async with ctx.db.acquire() as connection, connection.transaction():
            await connection.execute("insert into effects values ('half done')")
            await connection.execute("select pg_sleep(600)")


@job(timeout="1s", max_attempts=1)
async def hanging_in_transaction(ctx: JobContext) -> None:
    """Is between two statements of the transaction that completes it when its time is over."""
    with told(ctx):
        async with ctx.complete_in_transaction() as connection:
            await connection.execute("insert into effects values ('half done')")
            await asyncio.Event().wait()


@job
async def once_in_transaction(ctx: JobContext, input: dict[str, Any]) -> None:
    """Writes its effect in the transaction that completes it, after the gate."""
    with told(ctx):
        async with ctx.complete_in_transaction() as connection:
            await connection.execute("insert into effects values ($1)", f"lease {ctx.lease}")
            await until(open_for(ctx, input), PATIENCE, "the gate opens")


@job(max_attempts=1)
async def asking(ctx: JobContext, input: dict[str, Any]) -> None:
    """Is in the middle of a statement until the gate is open."""
    with told(ctx):
        if open_for(ctx, input)():
            return
        async with ctx.db.acquire() as connection:
            if input["in_transaction"]:
                async with connection.transaction():
                    await connection.execute("select pg_sleep(600)")
            await connection.execute("select pg_sleep(600)")
