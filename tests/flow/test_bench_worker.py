"""The worker that the benchmarks measure: a real process, watched while it is measured."""

import asyncio

import pytest
from benchmarks.worker_process import worker_process


async def test_a_worker_that_cannot_run_ends_the_measurement(database_url: str) -> None:
    with pytest.raises(RuntimeError, match="the worker ended with code"):
        async with worker_process(database_url, slots=1, batch=1, app="benchmarks.missing:app"):
            await asyncio.Event().wait()
