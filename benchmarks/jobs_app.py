"""The jobs that the benchmarks run, as an app for `forge worker`."""

import asyncio
import random
import time
from typing import Any

from forge import Forge, JobContext

app = Forge()


@app.job
async def no_op(ctx: JobContext, input: dict[str, Any]) -> None:
    """Do nothing, as quickly as possible."""


@app.job
async def report_time(ctx: JobContext, input: dict[str, float]) -> None:
    """Report the time repeatedly, each job at a random offset."""
    await asyncio.sleep(random.uniform(0, input["every"]))
    while time.time() < input["until"]:
        ctx.progress(50, repr(time.time()))
        await asyncio.sleep(input["every"])
