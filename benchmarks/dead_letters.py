"""A million dead letters, listed, grouped and counted: `python -m benchmarks.dead_letters`."""

import sys
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

import click
import uvloop

from benchmarks.bound import judged
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from forge import Forge
from forge.store.dead_letters import compact
from forge.store.statistics import count_jobs

Ask = Callable[[Forge], Awaitable[Any]]
LIST_MS, STATISTICS_MS = 300, 100
CAUSES, TENANTS = 2_000, 1_000


@click.command()
@click.option("--letters", default=1_000_000, show_default=True)
@click.option("--jobs", default=1_000_000, show_default=True)
def main(letters: int, jobs: int) -> None:
    """Measure what a reviewer waits for, among many dead letters and jobs."""
    with ThrowawayServer() as dsn:
        held = uvloop.run(_measure(dsn, letters, jobs))
    sys.exit(0 if held else 1)


async def _measure(dsn: str, letters: int, jobs: int) -> bool:
    async with Forge(database_url=dsn) as app, connected(dsn, 1) as (connection,):
        await app.migrate()
        await connection.execute(sql("fill_dead_letters"), letters, CAUSES, TENANTS)
        await connection.execute(sql("forge_fill_mixed"), jobs)
        await connection.execute("vacuum analyze")
        database = await (await app.session()).database()
        await database.run(compact(10 * letters))
        return all([await _timed(app, *question) for question in _questions(letters)])


def _questions(letters: int) -> list[tuple[str, int, Ask]]:
    middle = letters // 2
    return [
        ("list, newest", LIST_MS, lambda app: app.dead_letters.list()),
        ("list, a page in the middle", LIST_MS, lambda app: app.dead_letters.list(before=middle)),
        ("list of a tenant", LIST_MS, lambda app: app.dead_letters.list(tenant_id=7)),
        ("list of a type", LIST_MS, lambda app: app.dead_letters.list(job_type="type_7")),
        (
            "list of a tenant and type",
            LIST_MS,
            lambda app: app.dead_letters.list(tenant_id=7, job_type="type_7"),
        ),
        (
            "list by class, a page in the middle",
            LIST_MS,
            lambda app: app.dead_letters.list(error_class="transient", before=middle),
        ),
        ("groups", LIST_MS, lambda app: app.dead_letters.groups()),
        ("groups of a tenant", LIST_MS, lambda app: app.dead_letters.groups(tenant_id=7)),
        ("statistics", STATISTICS_MS, lambda app: app.dead_letters.statistics()),
        ("statistics of a tenant", STATISTICS_MS, lambda a: a.dead_letters.statistics(tenant_id=7)),
        ("queue statistics", STATISTICS_MS, lambda app: _queue(app, None)),
        ("queue statistics of a tenant", STATISTICS_MS, lambda app: _queue(app, 7)),
    ]


async def _queue(app: Forge, tenant: int | None) -> Any:
    return await count_jobs((await (await app.session()).database()).run, tenant)


async def _timed(app: Forge, name: str, most: int, ask: Ask) -> bool:
    took = []
    for _ in range(5):
        began = perf_counter()
        await ask(app)
        took.append((perf_counter() - began) * 1000)
    worst = max(took[1:])  # the first one plans
    return judged(f"{name}: worst ms", worst, f"≤ {most}", f"best {min(took):,.2f}")


if __name__ == "__main__":
    main()
