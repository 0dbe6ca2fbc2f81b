"""A job for workers that run in the test's own process."""

from forge import JobContext, job


@job
async def plain(ctx: JobContext) -> str:
    return "done"
