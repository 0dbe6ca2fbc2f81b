"""`python -m benchmarks.live`: from `ctx.progress` to the reader, and the cost of sockets.

A real server, a real worker and a reader, each in a separate process on one machine.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

import click
import psutil
import uvloop
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.bound import judged, keeps
from benchmarks.http import server_process
from benchmarks.jobs_app import report_time
from benchmarks.server import ThrowawayServer
from benchmarks.worker_process import worker_process
from forge import Config, Forge
from forge.store.connection.database import Database
from forge.store.migrate import migrate

# How many sockets to open at the same time: few enough not to fill the server's backlog.
AT_ONCE = 100
# The bound of a figure, by the end of its name.
BOUNDS = {
    "p95 ms": "≤ 250",
    "read of those made": "≥ 0.9",
    # Allows for heap fragmentation: a leak of ten thousand sockets is larger.
    "left behind, MiB": "≤ 2",
}


class Server(NamedTuple):
    """The URL of the server, the headers for access, and its pid."""

    url: str
    headers: dict[str, str]
    pid: int

    @property
    def mebibytes(self) -> float:
        return float(psutil.Process(self.pid).memory_info().rss / 2**20)


class Lateness(NamedTuple):
    """The delay of changes at the reader, in milliseconds."""

    changes: int
    p50: float
    p95: float
    p99: float


@click.command()
@click.option("--jobs", default=1000, show_default=True)
@click.option("--seconds", default=20.0, show_default=True)
@click.option("--every", default=1.0, show_default=True, help="Seconds between two reports.")
@click.option("--visits", default=10_000, show_default=True, help="Sockets opened and closed.")
@click.option("--json", "as_json", is_flag=True)
def main(jobs: int, seconds: float, every: float, visits: int, as_json: bool) -> None:
    """Measure live updates; exit with 1 if they are late or sockets leak memory."""
    with ThrowawayServer() as dsn:
        facts = uvloop.run(measured(dsn, jobs, seconds, every, visits))
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        _print(facts)
    bounds = {name: bound for name in facts if (bound := _bound_of(name))}
    raise SystemExit(not all(keeps(facts[name], bound) for name, bound in bounds.items()))


def _print(facts: dict[str, float]) -> None:
    for name, value in facts.items():
        if bound := _bound_of(name):
            judged(name, value, bound)
        else:
            click.echo(f"     {name:62} {value:10,.2f}")


def _bound_of(name: str) -> str | None:
    return next((bound for end, bound in BOUNDS.items() if name.endswith(end)), None)


async def measured(
    dsn: str, jobs: int, seconds: float, every: float, visits: int
) -> dict[str, float]:
    database = Database(dsn)
    await migrate(database)
    await database.close()
    facts: dict[str, float] = {}
    async with server_process(dsn) as (port, token, _):
        url, headers = f"ws://127.0.0.1:{port}/_api/ws", {"Authorization": f"Bearer {token}"}
        server = Server(url, headers, _child("server"))
        facts |= await memory(dsn, server, visits)
        async with worker_process(dsn, slots=jobs, batch=500):
            for sockets in (10, jobs):
                late = await lateness(dsn, server, jobs, sockets, seconds, every)
                name = f"{jobs} jobs on {sockets} sockets, progress to reader"
                facts[f"{name}, read of those made"] = late.changes * every / (jobs * seconds)
                for part in ("p50", "p95", "p99"):
                    facts[f"{name}, {part} ms"] = getattr(late, part)
    return facts


async def lateness(
    dsn: str, server: Server, jobs: int, sockets: int, seconds: float, every: float
) -> Lateness:
    """Follow jobs that report the time, and compare it with the time at the reader."""
    async with Forge(Config(), database_url=dsn) as app:
        app.register(report_time)
        connections = await opened(server, sockets)
        begin = time.time() + 5
        job = {"every": every, "until": begin + seconds + 2}
        handles = [await app.dispatch("report_time", job) for _ in range(jobs)]
        groups = [[handle.id for handle in handles[n::sockets]] for n in range(sockets)]
        late: list[float] = []
        readers = [
            asyncio.create_task(_read(socket, group, begin, begin + seconds, late))
            for socket, group in zip(connections, groups, strict=True)
        ]
        await asyncio.gather(*readers)
        for handle in handles:
            await handle.result(60)
    steps = statistics.quantiles(late, n=100)
    return Lateness(len(late), steps[49], steps[94], steps[98])


async def memory(dsn: str, server: Server, visits: int) -> dict[str, float]:
    """Open and close many sockets, then keep a thousand open."""
    async with Forge(Config(), database_url=dsn) as app:
        app.register(report_time)
        job_id = (await app.dispatch("report_time", {"every": 1, "until": 0}, delay="1h")).id
    started = server.mebibytes
    await _connect_and_disconnect(server, job_id, 1000)
    before = server.mebibytes
    await _connect_and_disconnect(server, job_id, visits)
    after = server.mebibytes
    held = await opened(server, 1000)
    await asyncio.gather(*(_visit(socket, job_id) for socket in held))
    full = server.mebibytes
    await _close(held)
    return {
        "server after startup, MiB": started,
        "after 1000 sockets opened and closed, MiB": before,
        f"after {visits} more, MiB": after,
        "left behind, MiB": after - before,
        "with 1000 sockets open, MiB": full,
    }


async def opened(server: Server, count: int) -> list[ClientConnection]:
    sockets: list[ClientConnection] = []
    while len(sockets) < count:
        batch = min(AT_ONCE, count - len(sockets))
        sockets += await asyncio.gather(*(_open(server) for _ in range(batch)))
    return sockets


async def _open(server: Server) -> ClientConnection:
    return await connect(server.url, additional_headers=server.headers, compression=None)


async def _connect_and_disconnect(server: Server, job_id: UUID, count: int) -> None:
    for _ in range(count // AT_ONCE):
        sockets = await opened(server, AT_ONCE)
        await asyncio.gather(*(_visit(socket, job_id) for socket in sockets))
        await _close(sockets)


async def _visit(socket: ClientConnection, job_id: UUID) -> None:
    await socket.send(json.dumps({"type": "subscribe", "job_id": str(job_id)}))
    message = json.loads(await socket.recv())
    if message["type"] != "job":
        raise RuntimeError(f"the server sent {message}, so the figure is invalid")


async def _close(sockets: Iterable[ClientConnection]) -> None:
    await asyncio.gather(*(socket.close() for socket in sockets))


async def _read(
    socket: ClientConnection, ids: Sequence[UUID], begin: float, end: float, late: list[float]
) -> None:
    """Read until `end`, and record the age of each report once."""
    for job_id in ids:
        await socket.send(json.dumps({"type": "subscribe", "job_id": str(job_id)}))
    seen: dict[str, str] = {}
    while (now := time.time()) < end:
        job = json.loads(await socket.recv())["job"]
        now, reported = time.time(), job["progress_message"]
        if reported is not None and seen.get(job["id"]) != reported and float(reported) > begin:
            late.append((now - float(reported)) * 1000)
        seen[job["id"]] = reported
    await socket.close()


def _child(command: str) -> int:
    (pid,) = (child.pid for child in psutil.Process().children() if command in child.cmdline())
    return int(pid)


if __name__ == "__main__":
    main()
