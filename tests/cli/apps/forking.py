"""An app whose handlers fork the worker's own process."""

import asyncio
import multiprocessing
import os
from typing import Any

import psycopg

import forge
from forge import JobContext

app = forge.Forge()


@app.job(max_attempts=1)
async def fork(ctx: JobContext, input: dict[str, Any]) -> str:
    """Fork, and continue in both processes as the input says."""
    forked = os.fork()
    if forked:
        return f"the worker forked {forked}"
    match input["how"]:
        case "awaits":
            await asyncio.sleep(0.01)
        case "asks the database":
            await ctx.heartbeat()
        case "raises":
            raise SystemExit(0)
    return "the copy"


@app.job(max_attempts=1)
async def fork_with_a_connection(ctx: JobContext, input: dict[str, Any]) -> str:
    """Hold a connection and fork; the child closes it, which would end the session of both."""
    with psycopg.connect(os.environ["FORGE_DATABASE_URL"]) as connection:
        forked = os.fork()
        if not forked:
            connection.close()
            return "the copy"
        os.waitpid(forked, 0)  # noqa: ASYNC222 - nothing else runs in this worker
        (answer,) = connection.execute("select 'the session goes on'").fetchone() or ("",)
    return str(answer)


@app.job(max_attempts=1)
def fork_in_thread(ctx: JobContext, input: dict[str, Any]) -> str:
    forked = os.fork()
    return f"the worker forked {forked}" if forked else "the copy"


@app.job(max_attempts=1)
async def use_multiprocessing(ctx: JobContext, input: dict[str, Any]) -> int:
    """Start a process as in the documentation of multiprocessing; it sends its result."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs,))
    process.start()
    answer = ours.recv()
    process.join()
    return int(answer)


def _answer(pipe: Any) -> None:
    pipe.send(6 * 7)


@app.job
async def greet(ctx: JobContext, input: dict[str, Any]) -> str:
    await ctx.heartbeat()
    return "hello"


@app.job
async def start_a_program(ctx: JobContext) -> str:
    """Run a program with asyncio, which forks before exec."""
    program = await asyncio.create_subprocess_exec(
        "echo", "started", stdout=asyncio.subprocess.PIPE
    )
    written, _ = await program.communicate()
    return written.decode().strip()
