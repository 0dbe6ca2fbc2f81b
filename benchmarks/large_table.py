"""Every read of the API over ten million jobs: `python -m benchmarks.large_table`.

The table is filled by COPY, with its secondary indexes built afterwards: that takes some minutes
and about 8 GB. Each request runs in this process, so that its time is the server's: its statements,
and what Python does with them. The overview and the findings are read each time.
"""

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any, NamedTuple

import asyncpg
import click
import httpx
import uvloop

from benchmarks.bound import judged
from benchmarks.reference_table import sql
from benchmarks.server import ThrowawayServer
from forge import Config, Forge
from forge.http import create_app
from forge.http.operations import overview
from forge.store.roles import grant_roles

READ_MS, WALK_MS = 100, 2000
# The first run of each request fills caches and plans; the worst of the others counts.
RUNS = 4
TENANT = 7
# A crash may lose what a benchmark measures, and COPY into a new table then writes no log.
SETTINGS = {
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "fsync": "off",
    "max_wal_size": "16GB",
    "maintenance_work_mem": "1GB",
    "shared_buffers": "1GB",
}
COLUMNS = (
    *("id", "status", "worker_id", "attempts", "lease", "job_type", "queue", "input", "tenant_id"),
    *("category", "correlation_id", "parent_id", "retry_of", "idempotency_key"),
    *("created_at", "scheduled_at"),
)
JOBS, QUEUE = "/_api/jobs", "/api/jobs/admin/queue/"
# What an index leads to.
READS = (
    *(JOBS, f"{JOBS}?view=summary&limit=200", f"{JOBS}?cursor={{cursor}}", f"{JOBS}?type=type_1"),
    *(f"{JOBS}?status=failed", f"{JOBS}?state=failed&cursor={{cursor}}", f"{JOBS}?status=running"),
    *(f"{JOBS}?status=pending", f"{JOBS}?parent_id={{parent}}", f"{JOBS}?retry_of={{original}}"),
    *(f"{JOBS}?correlation_id={{correlation}}", f"{JOBS}?idempotency_key={{key}}"),
    *(
        f"{JOBS}/counts",
        f"{JOBS}/counts?correlation_id={{correlation}}",
        f"{JOBS}/counts?type=type_1",
    ),
    *(f"{JOBS}/{{waiting}}", f"{JOBS}/{{waiting}}/why", f"{JOBS}/{{waiting}}/eta"),
    *(f"{JOBS}/{{waiting}}/timeline", QUEUE, f"{QUEUE}?type=type_1", f"{QUEUE}statistics/"),
    *("/_api/overview", "/_api/findings", "/_api/statistics", "/_api/statistics/by_type"),
)
OF_OPERATORS = (f"{JOBS}?tenant_id=7", f"{JOBS}?tenant_id=1&cursor={{cursor}}")
# Statistics of 20 types in two queues: 110,000 rows of minutes, and 27,000 of hours besides.
RANGES = ("/_api/statistics?from={two_days}", "/_api/statistics?from={month}")
# What no index leads to: these read the newest jobs until a limit, and say so.
WALKS = (
    *(f"{JOBS}?type=none", f"{JOBS}?queue=none", f"{JOBS}?priority=critical", f"{JOBS}?tag=none"),
    *(f"{JOBS}?worker_id={{original}}", f"{JOBS}?error_class=transient", f"{JOBS}?q=nothing"),
    *(f"{JOBS}?input.order_id=-1", f"{JOBS}?state=failed&type=none"),
)
ONLY_OPERATORS = ("/_api/overview", "/_api/findings")


class Request(NamedTuple):
    """A request, and what its answer must keep."""

    path: str
    caller: str
    limit: int
    is_walk: bool = False


def requests() -> list[Request]:
    """Return every request that is measured."""
    both = [
        Request(path, caller, READ_MS)
        for path in READS
        for caller in ("all", "one")
        if caller == "all" or path not in ONLY_OPERATORS
    ]
    operators = [Request(path, "all", READ_MS) for path in OF_OPERATORS]
    operators += [Request(path, "all", WALK_MS) for path in RANGES]
    return both + operators + [Request(path, "all", WALK_MS, is_walk=True) for path in WALKS]


@click.command()
@click.option("--jobs", default=10_000_000, show_default=True)
def main(jobs: int) -> None:
    """Measure how long the server takes to answer each read of a large table."""
    overview.OVERVIEW_AGE = overview.FINDINGS_AGE = -1
    with ThrowawayServer(SETTINGS) as dsn:
        held = uvloop.run(_measure(dsn, jobs))
    sys.exit(0 if held else 1)


async def _measure(dsn: str, jobs: int) -> bool:
    began = perf_counter()
    async with Forge(database_url=dsn) as app:
        await app.migrate()
        known = await _fill(dsn, jobs)
        await grant_roles(await (await app.session()).database())
    click.echo(f"     {jobs:,} jobs loaded in {perf_counter() - began:.0f} s, {known['size']}")
    config = Config(auth={"tokens": [_token("all", None), _token("one", TENANT)]})
    async with Forge(config, database_url=dsn.replace("//forge@", "//forge_api@")) as app:
        transport = httpx.ASGITransport(create_app(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as http:
            known["cursor"] = await _cursor(http)
            return all([await _timed(http, request, known, jobs) for request in requests()])


async def _fill(dsn: str, jobs: int) -> dict[str, Any]:
    """Fill the tables, and return what the requests name."""
    source, target = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    try:
        await _copy_jobs(source, target, jobs)
        await target.execute(sql("large_statistics"))
        await target.execute("analyze")
        return {
            "size": await target.fetchval(
                "select pg_size_pretty(pg_total_relation_size('forge_jobs'))"
            ),
            "waiting": await target.fetchval(
                "select id from forge_jobs where status = 'pending' and tenant_id is null limit 1"
            ),
            "two_days": _ago(47),
            "month": _ago(29 * 24),
            "parent": f"{20:032x}",
            "original": f"{4999:032x}",
            "correlation": f"{10:032x}",
            "key": "key%2050",
        }
    finally:
        await source.close()
        await target.close()


async def _copy_jobs(
    source: "asyncpg.Connection[Any]", target: "asyncpg.Connection[Any]", jobs: int
) -> None:
    """Copy the rows into the empty table without its triggers, and then build its indexes."""
    indexes = await target.fetch(
        "select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition "
        "from pg_index where indrelid = 'forge_jobs'::regclass and not indisprimary"
    )
    async with target.transaction():
        # In the same transaction as a truncate, COPY can mark all rows as visible for good.
        await target.execute("set local session_replication_role = replica")
        await target.execute("truncate forge_jobs")
        for index in indexes:
            await target.execute(f"drop index {index['name']}")
        await target.copy_to_table(
            "forge_jobs",
            source=_rows(source, jobs),
            columns=COLUMNS,
            format="binary",
            freeze=True,
        )
        for index in indexes:
            await target.execute(index["definition"])


async def _rows(source: "asyncpg.Connection[Any]", jobs: int) -> AsyncIterator[bytes]:
    """Yield the rows in the format of COPY, as the server produces them."""
    blocks: asyncio.Queue[bytes | None] = asyncio.Queue(100)
    query = sql("large_jobs").replace("$1", str(jobs))

    async def produce() -> None:
        await source.copy_from_query(query, output=blocks.put, format="binary")
        await blocks.put(None)

    producing = asyncio.create_task(produce())
    while (block := await blocks.get()) is not None:
        yield block
    await producing


def _token(name: str, tenant: int | None) -> dict[str, object]:
    secret = hashlib.sha256(name.encode()).hexdigest()
    token: dict[str, object] = {"name": name, "sha256": secret, "roles": ["staff", "manager"]}
    return token if tenant is None else token | {"tenant_id": tenant}


def _ago(hours: int) -> str:
    return f"{datetime.now(UTC) - timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"


async def _cursor(http: httpx.AsyncClient) -> str:
    """Return a cursor behind the newest jobs."""
    answer = await http.get(f"{JOBS}?limit=200", headers={"Authorization": "Bearer all"})
    answer.raise_for_status()
    return str(answer.json()["next_cursor"])


async def _timed(
    http: httpx.AsyncClient, request: Request, known: dict[str, Any], jobs: int
) -> bool:
    path = request.path.format(**known)
    took, is_early = [], False
    for _ in range(RUNS):
        began = perf_counter()
        answer = await http.get(path, headers={"Authorization": f"Bearer {request.caller}"})
        took.append((perf_counter() - began) * 1000)
        if answer.status_code != 404:  # another tenant's job
            answer.raise_for_status()
        is_early = request.is_walk and answer.json()["stopped_early"]
    worst = max(took[1:])
    detail = f"first {took[0]:,.1f}, best {min(took):,.1f}" + ", stopped early" * is_early
    name = f"{request.path[:45]} by {request.caller}: worst ms"
    held = judged(name, worst, f"≤ {request.limit}", detail)
    if request.is_walk and jobs > 1_000_000 and not is_early:
        click.echo(f"MISS {name}: it did not say that it stopped early")
        return False
    return held


if __name__ == "__main__":
    main()
