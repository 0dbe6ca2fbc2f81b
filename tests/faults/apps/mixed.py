"""The jobs of the chaos runs: short ones for each execution mode; some fail at first.

The sleeps simulate work, so that faults occur while handlers are running.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from forge import JobContext, Transient, job
from tests.faults.apps.reporting import recorded

MAX_ATTEMPTS = 20


@job(max_attempts=MAX_ATTEMPTS)
async def short(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx):
        await asyncio.sleep(input["seconds"])


@job(max_attempts=MAX_ATTEMPTS)
def short_in_thread(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx):
        time.sleep(input["seconds"])


@job(max_attempts=MAX_ATTEMPTS, isolation="process")
def short_in_process(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx):
        time.sleep(input["seconds"])


@job(max_attempts=MAX_ATTEMPTS)
async def flaky(ctx: JobContext, input: dict[str, Any]) -> None:
    with recorded(ctx):
        await asyncio.sleep(input["seconds"])
        if ctx.attempt <= 2:
            raise Transient("not yet", retry_after="50ms")


@job(max_attempts=MAX_ATTEMPTS)
async def reporting(ctx: JobContext, input: dict[str, Any]) -> None:
    """Write progress and a checkpoint, so that faults hit these writes too."""
    with recorded(ctx):
        for step in range(4):
            ctx.progress(step * 25, "in progress")
            ctx.checkpoint = {"step": step}
            await asyncio.sleep(input["seconds"] / 4)
