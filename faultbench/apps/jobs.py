"""The jobs of the bench, as an app for `forge worker`; each records its attempts.

Their sleeps simulate work, so that faults hit running handlers.
"""

import asyncio
import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import forge
from faultbench.history import VARIABLE, History, Kind
from forge import Forge, JobContext, ScheduleContext, Transient

app = Forge()
LONGEST = 600.0
STOPPED = (asyncio.CancelledError, forge.Cancelled, forge.StaleAttempt, forge.TimedOut)


@contextmanager
def recorded(ctx: JobContext, input: dict[str, Any]) -> Iterator[None]:
    """Record the start and the end of an attempt in the history."""
    history = History(os.environ[VARIABLE])
    attempt: dict[str, Any] = {"mark": input.get("mark", ""), "job": ctx.job_id, "lease": ctx.lease}
    history.record(Kind.STARTED, **attempt)
    ended: dict[str, Any] = {"how": "returned"}
    try:
        yield
    except BaseException as error:
        how = "stopped" if isinstance(error, STOPPED) else "raised"
        ended = {"how": how, "error": type(error).__name__}
        raise
    finally:
        history.record(Kind.ENDED, **attempt, **ended)


def is_open(input: dict[str, Any], lease: int) -> bool:
    """Return whether the gate file of this attempt, or of all attempts, exists."""
    gate = input.get("gate")
    return gate is None or Path(gate).exists() or Path(f"{gate}.{lease}").exists()


async def wait_for_gate(ctx: JobContext, input: dict[str, Any]) -> None:
    deadline = time.monotonic() + LONGEST
    while not is_open(input, ctx.lease) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


@app.job
async def empty(ctx: JobContext, input: dict[str, Any]) -> None:
    """Do nothing and record nothing, for drains that measure the engine."""


@app.job(max_attempts=20)
async def work(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input):
        await asyncio.sleep(input.get("seconds", 0))
        await wait_for_gate(ctx, input)


@app.job(max_attempts=20)
def work_in_thread(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input):
        end = time.monotonic() + input.get("seconds", 0)
        while time.monotonic() < end or not is_open(input, ctx.lease):
            time.sleep(0.01)


@app.job(max_attempts=20, isolation="process")
def work_in_process(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input):
        end = time.monotonic() + input.get("seconds", 0)
        while time.monotonic() < end or not is_open(input, ctx.lease):
            time.sleep(0.01)


@app.job(max_attempts=1)
async def once(ctx: JobContext, input: dict[str, Any]) -> None:
    """Run with one attempt: an external fault must not use it."""
    with recorded(ctx, input):
        await asyncio.sleep(input.get("seconds", 0))
        await wait_for_gate(ctx, input)


@app.job(max_attempts=3)
async def flaky(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input):
        await asyncio.sleep(input.get("seconds", 0))
        if ctx.attempt == 1:
            raise Transient("the first attempt fails", retry_after="50ms")


@app.job(max_attempts=2)
async def failing(ctx: JobContext, input: dict[str, Any]) -> None:
    raise Transient("it always fails")


@app.job
async def reporting(ctx: JobContext, input: dict[str, Any]) -> None:
    """Report progress and check that the attempt still owns the job."""
    with recorded(ctx, input):
        while not is_open(input, ctx.lease):
            ctx.progress(50, "waiting for the gate")
            await ctx.heartbeat()
            await asyncio.sleep(0.1)


@app.job
async def blocking(ctx: JobContext, input: dict[str, Any]) -> None:
    """Block the event loop with a synchronous call."""
    with recorded(ctx, input):
        time.sleep(input["seconds"])  # noqa: ASYNC251


@app.job
def holding_the_gil(ctx: JobContext, input: dict[str, Any]) -> None:
    """Sleep in C without releasing the interpreter lock."""
    with recorded(ctx, input):
        ctypes.PyDLL(None).usleep(int(input["seconds"] * 1_000_000))


@app.job(timeout="5s", max_attempts=1)
async def hanging(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input):
        await asyncio.sleep(LONGEST)


@app.job(timeout="5s", max_attempts=1)
def hanging_in_thread(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input):
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            time.sleep(0.01)


@app.job(timeout="5s", max_attempts=1, isolation="process")
def hanging_in_process(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input):
        time.sleep(LONGEST)


@app.job
async def poison(ctx: JobContext, input: dict[str, Any]) -> None:
    """Kill the process in which it runs."""
    with recorded(ctx, input):
        await wait_for_gate(ctx, input)
        # The bench sends no signal here, so the job records its own death.
        History(os.environ[VARIABLE]).record(Kind.KILLED, pid=os.getpid())
        match input["how"]:
            case "exit":
                os._exit(7)
            case "segmentation fault":
                ctypes.string_at(0)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)


@app.job
async def dying_at_the_end(ctx: JobContext, input: dict[str, Any]) -> None:
    """On the first attempt, kill the process after the work and before the completion."""
    with recorded(ctx, input):
        await wait_for_gate(ctx, input)
    if ctx.lease == 1:
        History(os.environ[VARIABLE]).record(Kind.KILLED, pid=os.getpid())
        os.kill(os.getpid(), signal.SIGKILL)


@app.job(max_attempts=20)
async def effect(ctx: JobContext, input: dict[str, Any]) -> None:
    """Write a row in the transaction that completes the job."""
    with suppress(forge.StaleAttempt):
        async with ctx.complete_in_transaction() as connection:
            with recorded(ctx, input):
                await connection.execute(
                    "insert into faultbench_effects (mark, lease) values ($1, $2)",
                    input["mark"],
                    ctx.lease,
                )
                await asyncio.sleep(input.get("seconds", 0))
                await wait_for_gate(ctx, input)


@app.job(max_attempts=1)
async def querying(ctx: JobContext, input: dict[str, Any]) -> None:
    """Use the handlers' connections, with one attempt."""
    with recorded(ctx, input):
        await wait_for_gate(ctx, input)
        async with ctx.db.acquire() as connection:
            await connection.execute("select pg_sleep($1)", input.get("seconds", 0.0))
            await connection.execute(
                "insert into faultbench_effects (mark, lease) values ($1, $2)",
                input["mark"],
                ctx.lease,
            )


@app.job
async def holding_connections(ctx: JobContext, input: dict[str, Any]) -> None:
    """Take a connection of the handlers' pool and keep it."""
    with recorded(ctx, input):
        async with ctx.db.acquire() as connection:
            await connection.execute("select 1")
            await wait_for_gate(ctx, input)


@app.job(timeout="2s", max_attempts=1)
async def in_transaction(ctx: JobContext, input: dict[str, Any]) -> None:
    """Exceed the timeout in the middle of a transaction."""
    with recorded(ctx, input):
        async with ctx.db.acquire() as connection, connection.transaction():
            await connection.execute(
                "insert into faultbench_effects (mark, lease) values ($1, $2)",
                input["mark"],
                ctx.lease,
            )
            if input["in_statement"]:
                await connection.execute("select pg_sleep(600)")
            await asyncio.sleep(LONGEST)


@app.schedule("ticking")
async def ticking(ctx: ScheduleContext, payload: dict[str, Any]) -> None:
    """Record the tick of this run."""
    History(os.environ[VARIABLE]).record(
        Kind.TICK, tick=str(ctx.schedule.next_run_at), key=ctx.schedule.key
    )


@app.job(isolation="process", timeout="8s", max_attempts=1)
def forking(ctx: JobContext, input: dict[str, Any]) -> None:
    """Fork a grandchild that would outlive it, then exit or wait, depending on the input."""
    with recorded(ctx, input):
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(LONGEST,))
        child.start()
        Path(input["grandchild"]).write_text(str(child.pid))
        if input["how"] == "exit":
            os._exit(7)
        time.sleep(LONGEST)
