"""Dispatch over HTTP: one server process, and a load generator beside it."""

import asyncio
import json
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import psutil

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
roles = {roles}
sha256 = "{hash}"
"""


class Loaded(NamedTuple):
    """Requests per second, and the processor time that each side used per second."""

    rate: float
    load_share: float
    server_share: float


async def dispatch_rate(dsn: str, seconds: float) -> Loaded:
    """Measure how many jobs one server process dispatches for 50 connections."""
    async with connected(dsn, 1) as (connection,), server_process(dsn) as (port, token, server):
        await connection.execute(sql("forge_empty"))
        await connection.execute(sql("checkpoint"))
        await _load(port, token, seconds / 4)
        before = await connection.fetchval(sql("forge_count"))
        used = psutil.Process(server).cpu_times()
        load = await _load(port, token, seconds)
        used_after = psutil.Process(server).cpu_times()
        after = await connection.fetchval(sql("forge_count"))
    if after - before != load["count"]:
        raise RuntimeError(
            f"{load['count']} responses and {after - before} new jobs, so the figure is invalid"
        )
    server_seconds = used_after.user + used_after.system - used.user - used.system
    return Loaded(
        load["count"] / load["seconds"],
        round(load["processor_seconds"] / load["seconds"], 2),
        round(server_seconds / load["seconds"], 2),
    )


@asynccontextmanager
async def server_process(
    dsn: str, roles: Sequence[str] = ("user",)
) -> AsyncIterator[tuple[int, str, int]]:
    """Run `forge server` during the block; yield its port, a token and its process id."""
    token, port = secrets.token_urlsafe(32), _free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "forge.toml"
        hash = sha256(token.encode()).hexdigest()
        settings.write_text(
            SETTINGS.format(
                dsn=dsn, secret=secrets.token_hex(32), hash=hash, roles=json.dumps(roles)
            )
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "forge.cli.main", "server", "benchmarks.http_app:app"),
            *("--port", str(port), "--log-level", "warning"),
            cwd=ROOT,
            env=os.environ | {"FORGE_BENCH_CONFIG": str(settings)},
            stdout=sys.stderr,  # standard output is the report's, JSON with --json
        )
        try:
            await _listening(port)
            yield port, token, process.pid
        finally:
            process.terminate()
            await process.wait()


async def _load(port: int, token: str, seconds: float) -> dict[str, float]:
    """Send requests from another process; return its count, seconds and processor time."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.http_load"),
        *(str(port), token, str(CONNECTIONS), str(seconds)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    written, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError("the load generator failed, so the figure is invalid")
    measured: dict[str, float] = json.loads(written)
    return measured


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
