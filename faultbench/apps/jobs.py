"""The jobs of the bench, as an app for `forge worker`; each records its attempts.

Their sleeps stand for work: faults have to find them running.
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
    """Write the start and the end of an attempt into the history."""
    history = History(os.environ[VARIABLE])
    which: dict[str, Any] = {"mark": input.get("mark", ""), "job": ctx.job_id, "lease": ctx.lease}
    history.record(Kind.STARTED, **which)
    ended: dict[str, Any] = {"how": "returned"}
    try:
        yield
    except BaseException as error:
        how = "stopped" if isinstance(error, STOPPED) else "raised"
        ended = {"how": how, "error": type(error).__name__}
        raise
    finally:
        history.record(Kind.ENDED, **which, **ended)


def is_open(input: dict[str, Any], lease: int) -> bool:
    """Whether the gate of this attempt, or of all, is open: a file that the bench makes."""
    gate = input.get("gate")
    return gate is None or Path(gate).exists() or Path(f"{gate}.{lease}").exists()


async def passed(ctx: JobContext, input: dict[str, Any]) -> None:
    deadline = time.monotonic() + LONGEST
    while not is_open(input, ctx.lease) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


@app.job
async def empty(ctx: JobContext, input: dict[str, Any]) -> None:
    """Does nothing and records nothing, for drains that measure the engine."""


@app.job(max_attempts=20)
async def work(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx, input):
        await asyncio.sleep(input.get("seconds", 0))
        await passed(ctx, input)


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
    """Work that may be tried once: a fault that is not its own must not use up the attempt."""
    with recorded(ctx, input):
        await asyncio.sleep(input.get("seconds", 0))
        await passed(ctx, input)


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
    """Says how far it is, and asks whether the job is still its own."""
    with recorded(ctx, input):
        while not is_open(input, ctx.lease):
            ctx.progress(50, "waiting for the gate")
            await ctx.heartbeat()
            await asyncio.sleep(0.1)


@app.job
async def blocking(ctx: JobContext, input: dict[str, Any]) -> None:
    """Blocks the event loop, as a call that forgot to be asynchronous."""
    with recorded(ctx, input):
        time.sleep(input["seconds"])  # noqa: ASYNC251


@app.job
def holding_the_gil(ctx: JobContext, input: dict[str, Any]) -> None:
    """Sleeps in C without releasing the interpreter lock."""
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
    """Kills the process in which it runs."""
    with recorded(ctx, input):
        await passed(ctx, input)
        # Its death is its own: no signal of the bench would be in the history.
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
    """Its first attempt kills its process after the work is done and before it is completed."""
    with recorded(ctx, input):
        await passed(ctx, input)
    if ctx.lease == 1:
        History(os.environ[VARIABLE]).record(Kind.KILLED, pid=os.getpid())
        os.kill(os.getpid(), signal.SIGKILL)


@app.job(max_attempts=20)
async def effect(ctx: JobContext, input: dict[str, Any]) -> None:
    """Writes a row in the transaction that completes the job."""
    with suppress(forge.StaleAttempt):
        async with ctx.complete_in_transaction() as connection:
            with recorded(ctx, input):
                await connection.execute(
                    "insert into faultbench_effects (mark, lease) values ($1, $2)",
                    input["mark"],
                    ctx.lease,
                )
                await asyncio.sleep(input.get("seconds", 0))
                await passed(ctx, input)


@app.job(max_attempts=1)
async def querying(ctx: JobContext, input: dict[str, Any]) -> None:
    """Uses the handlers' connections; may be tried once."""
    with recorded(ctx, input):
        await passed(ctx, input)
        async with ctx.db.acquire() as connection:
            await connection.execute("select pg_sleep($1)", input.get("seconds", 0.0))
            await connection.execute(
                "insert into faultbench_effects (mark, lease) values ($1, $2)",
                input["mark"],
                ctx.lease,
            )


@app.job
async def holding_connections(ctx: JobContext, input: dict[str, Any]) -> None:
    """Takes a connection of the handlers' pool and keeps it."""
    with recorded(ctx, input):
        async with ctx.db.acquire() as connection:
            await connection.execute("select 1")
            await passed(ctx, input)


@app.job(timeout="2s", max_attempts=1)
async def in_transaction(ctx: JobContext, input: dict[str, Any]) -> None:
    """Its time is over in the middle of a transaction."""
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
    """Record the tick for which it runs."""
    History(os.environ[VARIABLE]).record(
        Kind.TICK, tick=str(ctx.schedule.next_run_at), key=ctx.schedule.key
    )


@app.job(isolation="process", timeout="8s", max_attempts=1)
def forking(ctx: JobContext, input: dict[str, Any]) -> None:
    """Starts a grandchild that would outlive it, then waits, exits or ends as its input says."""
    with recorded(ctx, input):
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(LONGEST,))
        child.start()
        Path(input["grandchild"]).write_text(str(child.pid))
        if input["how"] == "exit":
            os._exit(7)
        time.sleep(LONGEST)
