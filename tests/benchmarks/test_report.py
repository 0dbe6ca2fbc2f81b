"""The report of the benchmarks can be read by a program."""

import asyncio
import json
import sys


async def test_json_is_all_that_is_written_to_standard_output(database_url: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks", "--database-url", database_url, "--json"),
        *("--scale", "0.01", "--repetitions", "1", "--only", "over HTTP"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )

    written, _ = await asyncio.wait_for(process.communicate(), 90)

    (line,) = json.loads(written)["ratios"]
    assert line["name"].startswith("dispatch over HTTP")
    assert min(line["ours"]) > 0
