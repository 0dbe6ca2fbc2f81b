"""The jobs that the benchmarks run, as an app for `forge worker`."""

from typing import Any

from forge import Forge, JobContext

app = Forge()


@app.job
async def no_op(ctx: JobContext, input: dict[str, Any]) -> None:
    """Do nothing, as quickly as possible."""
