"""A handler that a child process can import."""

import forge
from forge import JobContext


@forge.job
async def rest(ctx: JobContext) -> None: ...
