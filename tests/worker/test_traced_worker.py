"""A worker that is looked at, by a debugger or for its coverage, still runs plain functions."""

import subprocess
import sys

import pytest

APP = """
import asyncio, sys, time
from forge import Forge, JobContext, JobFailed, Worker

app = Forge(database_url=sys.argv[1])

@app.job(timeout="300ms", max_attempts=1)
def plain(ctx: JobContext, input: dict) -> str:
    while input["hangs"]:
        time.sleep(0.01)
    return "done"

async def main():
    async with app:
        worker = Worker(app)
        running = asyncio.create_task(worker.run())
        await worker.started.wait()
        try:
            print(await (await plain.dispatch({"hangs": sys.argv[2] == "stopped"})).result(20))
        except JobFailed:
            print("stopped")
        sys.settrace(lambda *seen: None)
        print(await (await plain.dispatch({"hangs": False})).result(20))
        worker.drain()
        await running

asyncio.run(main())
"""


@pytest.mark.parametrize("first", ["done", "stopped"])
def test_nothing_hangs_after_a_plain_function_has_ended(database_url: str, first: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", APP, database_url, first],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ended.stdout.split() == [first, "done"], ended.stderr
