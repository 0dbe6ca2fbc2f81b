"""Schedules that a child process can import."""

import os
from datetime import timedelta

import forge
from forge import ScheduleContext


@forge.schedule("in_child", isolation="process")
async def in_child(ctx: ScheduleContext, payload: dict) -> timedelta:
    """Say which process ran it, and what its context knows."""
    await ctx.heartbeat()
    ctx.progress(50, f"{os.getpid()} {ctx.schedule.key} {ctx.schedule.payload == payload}")
    ctx.checkpoint = {"runs": (ctx.checkpoint or {"runs": 0})["runs"] + 1}
    return timedelta(hours=1)


@forge.schedule("where")
async def where(ctx: ScheduleContext) -> timedelta:
    """Say which process ran it."""
    ctx.progress(50, str(os.getpid()))
    return timedelta(hours=1)


@forge.schedule("dies", isolation="process")
def dies(ctx: ScheduleContext) -> None:
    """End the process that runs it."""
    os._exit(3)


@forge.schedule("completes", isolation="process")
async def completes(ctx: ScheduleContext) -> None:
    """Write a row and complete, in one transaction."""
    async with ctx.complete_in_transaction(timedelta(hours=1)) as conn:
        await conn.execute("insert into effects values ($1)", ctx.schedule.lease)
