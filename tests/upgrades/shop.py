"""The app of the upgrade: both versions run it."""

import os
from datetime import timedelta
from typing import Any

import forge

app = forge.Forge()


@app.job
async def start_ticks(ctx: forge.JobContext, input: dict[str, Any]) -> None:
    await app.schedules.ensure("tick")


@app.job
async def work(ctx: forge.JobContext, input: dict[str, Any]) -> int:
    async with ctx.db.acquire() as conn:
        await conn.execute("insert into runs values ($1, $2)", ctx.job_id, os.getpid())
    if input.get("fails") and ctx.attempt == 1:
        raise forge.Retryable("on purpose")
    return ctx.attempt


@app.schedule("tick", every=timedelta(seconds=1))
async def tick(ctx: forge.ScheduleContext) -> None:
    async with ctx.db.acquire() as conn:
        await conn.execute("insert into ticks values ($1)", os.getpid())
