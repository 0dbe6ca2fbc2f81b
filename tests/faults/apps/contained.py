"""The app that runs in a container: isolated jobs, a schedule, and an orphan for PID 1 to reap."""

import asyncio
import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import forge
from forge import JobContext, ScheduleContext

app = forge.Forge()

# The parent of this `sleep` has exited, so PID 1 adopts it.
subprocess.run(["sh", "-c", "sleep 0.1 & echo orphan is $!"], check=True)


@app.job(isolation="process")
async def isolated(ctx: JobContext, input: dict[str, Any]) -> dict[str, int]:
    return {"pid": os.getpid()}


@app.job
async def wait_at(ctx: JobContext, input: dict[str, Any]) -> int:
    """Wait until a file exists, and return the id of the process."""
    while not Path(input["gate"]).exists():  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)
    return os.getpid()


@app.schedule("isolated_run", isolation="process")
async def isolated_run(ctx: ScheduleContext) -> timedelta:
    return timedelta(hours=1)
