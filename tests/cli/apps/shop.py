"""The app that the tests of the command line run."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import forge
from forge import JobContext, Retry

app = forge.Forge()


@app.job
async def greet(ctx: JobContext, input: dict[str, Any]) -> dict[str, Any]:
    ctx.progress(50, "thinking of a greeting")
    return {"text": f"hello {input['name']}"}


@app.job(max_attempts=1)
async def fail(ctx: JobContext, input: dict[str, Any]) -> None:
    raise ValueError(input.get("why", "no luck today"))


@app.job(retry=Retry(max_attempts=5, max_backoff="1h", backoff="fixed"))
async def fail_for_now(ctx: JobContext, input: dict[str, Any]) -> None:
    raise forge.RateLimited("later", retry_after="1h")


@app.job
async def wait_at(ctx: JobContext, input: dict[str, Any]) -> str:
    """Wait until a file exists."""
    ctx.progress(input.get("percent", 0), input.get("message"))
    gate = Path(input["gate"])
    while not gate.exists():  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)
    return "passed"


@app.job
async def fail_then_wait(ctx: JobContext, input: dict[str, Any]) -> None:
    if ctx.attempt == 1:
        raise ValueError("no luck at first")
    ctx.progress(40, "resizing b.png")
    await asyncio.sleep(60)


@app.job
async def refuse_to_end(ctx: JobContext, input: dict[str, Any]) -> None:
    """Ignore cancellation."""
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@app.job
def hang(ctx: JobContext, input: dict[str, Any]) -> None:
    """Block in a call that cannot be interrupted."""
    time.sleep(600)


@app.job(worker_capability="gpu")
async def render(ctx: JobContext, input: dict[str, Any]) -> None:
    return None


@app.job
async def environment(ctx: JobContext) -> list[str]:
    """Return the names of the environment variables."""
    return sorted(os.environ)
