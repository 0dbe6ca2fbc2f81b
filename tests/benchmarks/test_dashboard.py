"""The benchmark of the dashboard's screens, in a short form: it requests what exists."""

import asyncio
import sys

from benchmarks.dashboard import SCREENS


async def test_every_screen_is_measured() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.dashboard", "--jobs", "500", "--repetitions", "1"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )

    written, errors = await asyncio.wait_for(process.communicate(), 180)

    output = written.decode()
    assert "Traceback" not in errors.decode()
    for screen in SCREENS:
        assert f"{screen}, ms" in output
    assert "first paint of the list" in output
