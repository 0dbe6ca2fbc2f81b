"""One real `forge worker` process."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks.reference_table import sql

ROOT = Path(__file__).parent.parent


@asynccontextmanager
async def worker_process(
    dsn: str,
    *,
    slots: int,
    batch: int,
    app: str = "benchmarks.jobs_app:app",
    ends_with: int = 0,
) -> AsyncIterator[int]:
    """Run a worker for the duration of the block; yield its process id.

    If the worker exits with an unexpected code, the block is cancelled: no jobs would run.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "forge.cli.main",
        "worker",
        app,
        "--log-level=off",
        cwd=ROOT,
        env=os.environ
        | {
            "FORGE_DATABASE_URL": dsn,
            "FORGE_WORKER_MAX_CONCURRENT": str(slots),
            "FORGE_WORKER_BATCH_SIZE": str(batch),
            "FORGE_WORKER_METRICS_PORT": "off",
        },
        stdout=asyncio.subprocess.DEVNULL,
    )
    measuring = asyncio.current_task()
    assert measuring is not None
    ending = asyncio.create_task(process.wait())

    def on_exit(_: Any) -> None:
        if process.returncode != ends_with:
            measuring.cancel()

    ending.add_done_callback(on_exit)
    try:
        yield process.pid
    finally:
        ending.remove_done_callback(on_exit)
        if process.returncode is None:
            process.terminate()
        if await ending != ends_with:
            raise RuntimeError(
                f"the worker ended with code {process.returncode}, so the figure is invalid; run "
                f"`forge worker {app}` to see why"
            )


async def drained(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Wait until no job is waiting or running."""
    while await connection.fetchval(sql("forge_is_busy")):  # noqa: ASYNC110
        await asyncio.sleep(
            0.5
        )  # rarely: each query steps over the dead rows that the worker leaves
