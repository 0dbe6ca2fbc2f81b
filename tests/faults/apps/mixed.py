"""The jobs of the chaos runs: short ones of every kind, some of which fail at first.

Their sleeps stand for work: the faults have to find them in the midst of it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from forge import JobContext, Transient, job
from tests.faults.apps.telling import told

MOST_ATTEMPTS = 20


@job(max_attempts=MOST_ATTEMPTS)
async def short(ctx: JobContext, input: dict[str, Any]) -> None:
    with told(ctx):
        await asyncio.sleep(input["seconds"])


@job(max_attempts=MOST_ATTEMPTS)
def short_in_thread(ctx: JobContext, input: dict[str, Any]) -> None:
    with told(ctx):
        time.sleep(input["seconds"])


@job(max_attempts=MOST_ATTEMPTS, isolation="process")
def short_in_process(ctx: JobContext, input: dict[str, Any]) -> None:
    with told(ctx):
        time.sleep(input["seconds"])


@job(max_attempts=MOST_ATTEMPTS)
async def flaky(ctx: JobContext, input: dict[str, Any]) -> None:
    with told(ctx):
        await asyncio.sleep(input["seconds"])
        if ctx.attempt <= 2:
            raise Transient("not yet", retry_after="50ms")


@job(max_attempts=MOST_ATTEMPTS)
async def reporting(ctx: JobContext, input: dict[str, Any]) -> None:
    """Writes progress and a checkpoint, so that notes run into the faults as well."""
    with told(ctx):
        for step in range(4):
            ctx.progress(step * 25, "on its way")
            ctx.checkpoint = {"step": step}
            await asyncio.sleep(input["seconds"] / 4)
