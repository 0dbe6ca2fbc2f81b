"""The benchmarks measure a worker process and fail if it ends."""

import asyncio

import pytest
from benchmarks.worker_process import worker_process


async def test_a_worker_that_fails_to_start_ends_the_benchmark(database_url: str) -> None:
    with pytest.raises(RuntimeError, match="the worker ended with code"):
        async with worker_process(database_url, slots=1, batch=1, app="benchmarks.missing:app"):
            await asyncio.Event().wait()
