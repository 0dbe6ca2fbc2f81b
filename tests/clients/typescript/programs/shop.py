"""The app whose jobs the programs of these tests follow."""

import asyncio
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from forge import ActionContext, Forge, JobContext, MutationContext

app = Forge()


class Export(BaseModel):
    format: str
    gate: str | None = None


@app.job(max_attempts=1)
async def export_users(ctx: JobContext, input: Export) -> dict[str, str]:
    """Report progress, wait until the file `gate` exists, and return the name of a file."""
    if input.format == "broken":
        raise ValueError("no such format")
    ctx.progress(40, "40 of 100")
    while input.gate and not Path(input.gate).exists():  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)
    return {"file": f"users.{input.format}"}


@app.mutation
async def register_user(ctx: MutationContext, email: str) -> dict[str, Any]:
    handle = await ctx.dispatch_job(export_users, {"format": email})
    return {"job_id": handle.id}


@app.action
async def double(ctx: ActionContext, number: int) -> int:
    return 2 * number
