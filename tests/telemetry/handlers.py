"""Handlers that a child process can import."""

from typing import Any

import forge
from forge import JobContext


@forge.job(isolation="process", max_attempts=1)
async def call_from_process(ctx: JobContext, input: dict[str, Any]) -> None:
    await ctx.http.get(input["address"], extensions={"service": "shop", "operation": "look"})
    assert ctx.traceparent == input["traceparent"]
