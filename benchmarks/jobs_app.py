"""The jobs that the benchmarks run, as an app for `forge worker`."""

import time
from typing import Any

from forge import Forge, JobContext

app = Forge()


@app.job
async def no_op(ctx: JobContext, input: dict[str, Any]) -> None:
    """Do nothing, as quickly as possible."""


@app.job
async def stamp(ctx: JobContext, input: dict[str, Any]) -> dict[str, float]:
    """Say how long ago it was dispatched, by a clock that all processes of a machine share."""
    return {"seconds": time.monotonic() - input["at"]}
