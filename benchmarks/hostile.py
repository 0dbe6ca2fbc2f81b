"""How long hostile inputs block the server's event loop: `python -m benchmarks.hostile`.

The server runs on this process's loop, next to a task that wakes every millisecond and records
its delay. Another process dispatches large inputs, lists them and searches in them.
"""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from time import perf_counter

import click
import uvloop

from benchmarks.bound import judged
from benchmarks.hostile_load import INPUTS
from benchmarks.http import ROOT
from benchmarks.jobs_app import no_op
from benchmarks.server import ThrowawayServer
from forge import Forge
from forge.cli.processes.serving import address_of, listen, make_server
from forge.config.server import AuthConfig
from forge.http import create_app
from forge.store.connection.database import Database
from forge.store.migrate import migrate

TICK = 0.001
REPEATS = 3
# Milliseconds: a 200 kB body is parsed in one step on the loop; other work runs in a thread.
BOUND = "≤ 250"


async def main() -> bool:
    """Print the longest stall of the loop for each kind of input, the calm one first."""
    kept = True
    async with ThrowawayServer() as dsn:
        database = Database(dsn)
        await migrate(database)
        await database.close()
        async with _serving(dsn) as (url, token):
            for kind in INPUTS:
                stalls = [await _longest_stall(url, token, kind) for _ in range(REPEATS)]
                detail = " ".join(f"{stall:.0f}" for stall in stalls)
                kept &= judged(
                    f"longest stall of the loop, {kind} (ms)", min(stalls), BOUND, detail
                )
    return kept


@asynccontextmanager
async def _serving(dsn: str) -> AsyncIterator[tuple[str, str]]:
    token = secrets.token_urlsafe(32)
    app = Forge(database_url=dsn)
    app.register(no_op)
    known = {"name": "bench", "roles": ["user"], "sha256": sha256(token.encode()).hexdigest()}
    auth = AuthConfig.model_validate({"secret": secrets.token_hex(32), "tokens": [known]})
    app.config = app.config.model_copy(update={"auth": auth})
    listener = listen("127.0.0.1", 0)
    server = make_server(create_app(app))
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield address_of(listener), token
    finally:
        server.should_exit = True
        await task
        await app.close()


async def _longest_stall(url: str, token: str, kind: str) -> float:
    longest = 0.0
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.hostile_load", url, token, kind), cwd=ROOT
    )
    ended = asyncio.ensure_future(process.wait())
    while not ended.done():
        before = perf_counter()
        await asyncio.sleep(TICK)
        longest = max(longest, perf_counter() - before - TICK)
    if ended.result() != 0:
        raise RuntimeError("the hostile client failed, so the figure is invalid")
    return longest * 1000


if __name__ == "__main__":
    click.echo("the server's event loop under hostile inputs")
    sys.exit(0 if uvloop.run(main()) else 1)
