"""A job that is completed in a transaction of its handler's, which has not returned yet."""

import asyncio

from forge import Forge, JobContext, JobHandle
from tests.apps import Work


async def complete_early(
    app: Forge, work: Work, output: str | None = "receipt"
) -> tuple[JobHandle, asyncio.Event]:
    """Start a worker and such a job; its handler returns the output once the event is set."""
    completed, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def pay(ctx: JobContext) -> str | None:
        async with ctx.complete_in_transaction():
            pass
        completed.set()
        await go_on.wait()
        return output

    await work(app)
    handle = await pay.dispatch()
    await completed.wait()
    return handle, go_on
