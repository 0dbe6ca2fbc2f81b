"""Dispatch over HTTP compared with in-process dispatch, with the same number of callers."""

import asyncio
import json
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

from benchmarks.reference_table import connected, sql

ROOT = Path(__file__).parent.parent
CONNECTIONS = 50

SETTINGS = """
[database]
url = "{dsn}"
[auth]
secret = "{secret}"
[[auth.tokens]]
name = "bench"
roles = ["user"]
sha256 = "{hash}"
"""


async def dispatch_rate(dsn: str, seconds: float) -> float:
    """Return the jobs per second that one server process dispatches for 50 connections."""
    async with connected(dsn, 1) as (connection,), server_process(dsn) as (port, token):
        await connection.execute(sql("forge_empty"))
        await connection.execute(sql("checkpoint"))
        await _load(port, token, seconds / 4)
        before = await connection.fetchval(sql("forge_count"))
        rate, count = await _load(port, token, seconds)
        after = await connection.fetchval(sql("forge_count"))
    if after - before != count:
        raise RuntimeError(
            f"{count} responses and {after - before} new jobs, so the figure is invalid"
        )
    return rate


@asynccontextmanager
async def server_process(dsn: str) -> AsyncIterator[tuple[int, str]]:
    """Run `forge server` for the duration of the block; yield its port and a token."""
    token, port = secrets.token_urlsafe(32), _free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "forge.toml"
        hash = sha256(token.encode()).hexdigest()
        settings.write_text(SETTINGS.format(dsn=dsn, secret=secrets.token_hex(32), hash=hash))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "forge.cli.main", "server", "benchmarks.http_app:app"),
            *("--port", str(port), "--log-level", "warning"),
            cwd=ROOT,
            env=os.environ | {"FORGE_BENCH_CONFIG": str(settings)},
            stdout=sys.stderr,  # standard output is the report's, JSON with --json
        )
        try:
            await _listening(port)
            yield port, token
        finally:
            process.terminate()
            await process.wait()


async def _load(port: int, token: str, seconds: float) -> tuple[float, int]:
    """Send requests from another process; return the responses per second and in total."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.http_load"),
        *(str(port), token, str(CONNECTIONS), str(seconds)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    written, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError("the load generator failed, so the figure is invalid")
    found = json.loads(written)
    return found["rate"], found["count"]


async def _listening(port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
