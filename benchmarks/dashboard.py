"""`python -m benchmarks.dashboard`: the screens of the dashboard beside 1,000,000 jobs."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import asyncpg
import click
import httpx

from benchmarks.bound import judged
from benchmarks.http import server_process
from benchmarks.reference_table import connected, sql
from benchmarks.server import ThrowawayServer
from forge.store.connection.database import Database
from forge.store.migrate import migrate

ROLES = ("user", "staff", "manager")
CHROMIUM = Path(os.environ.get("FORGE_TEST_CHROMIUM", "/usr/bin/chromium"))
# Of 100 jobs, how many wait; the rest is completed.
WAITING = 2
SERVER_BOUND, PAINT_BOUND = "≤ 300", "≤ 1000"
NOW = ("/_api/job_types", "/_api/backlog", "/_api/workers", "/_api/pauses")
MONTH = "from={since}"
# What each screen requests; `{job}` is a completed job.
SCREENS: Mapping[str, Sequence[str]] = {
    "Overview, 30 days": (
        "/_api/overview",
        "/_api/findings",
        f"/_api/statistics?{MONTH}",
        f"/_api/statistics/by_type?{MONTH}&group=all",
        f"/_api/statistics/by_type?{MONTH}&group=type",
        *NOW,
    ),
    "Jobs": ("/_api/jobs?limit=50", "/_api/jobs/counts"),
    "Jobs, one type": ("/_api/jobs?limit=50&type=type_7", "/_api/jobs/counts?type=type_7"),
    "Jobs that wait": ("/_api/jobs?limit=50&status=pending",),
    "Jobs, none match a text": ("/_api/jobs?limit=50&q=nothing",),
    "Job": (
        "/_api/jobs/{job}",
        "/_api/jobs/{job}/timeline",
        "/_api/jobs/{job}/why",
        "/_api/jobs?parent_id={job}",
        "/_api/jobs?retry_of={job}",
    ),
    "Dead letters": (
        "/api/jobs/admin/dlq/?status=pending_review",
        "/api/jobs/admin/dlq/groups/",
        "/api/jobs/admin/dlq/statistics/",
    ),
    "Schedules": ("/_api/schedules",),
    "Job types": (f"/_api/statistics/by_type?{MONTH}&group=type", *NOW),
    "Queues": (f"/_api/statistics/by_type?{MONTH}&group=queue", *NOW),
    "Workers": ("/_api/workers",),
    "Database": ("/_api/findings?include_ok=true",),
    "Audit": ("/_api/audit?limit=50",),
}


@click.command()
@click.option("--jobs", default=1_000_000, show_default=True)
@click.option("--repetitions", default=5, show_default=True)
def main(jobs: int, repetitions: int) -> None:
    """Measure each screen; exit with 1 if one is slower than its bound."""
    with ThrowawayServer() as dsn:
        raise SystemExit(not asyncio.run(measured(dsn, jobs, repetitions)))


async def measured(dsn: str, jobs: int, repetitions: int) -> bool:
    """Print how long the requests of each screen take, and the first paint of the list."""
    database = Database(dsn)
    await migrate(database)
    await database.close()
    async with connected(dsn, 1) as (connection,):
        await _fill(connection, jobs)
        names = dict(await connection.fetchrow(sql("dashboard_names")))
    async with server_process(dsn, ROLES) as (port, token, _):
        address = f"http://127.0.0.1:{port}"
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as http:
            are_kept = [await _keeps_bound(http, screen, names, repetitions) for screen in SCREENS]
        paint = await _first_paint(f"{address}/#token={token}", repetitions)
    if paint is None:
        click.echo(f"     no first paint: {CHROMIUM} is missing")
    else:
        are_kept.append(judged("first paint of the list, ms", paint, PAINT_BOUND))
    return all(are_kept)


async def _keeps_bound(
    http: httpx.AsyncClient, screen: str, names: Mapping[str, Any], repetitions: int
) -> bool:
    """Measure the requests of a screen, which a browser sends all at once; judge the slowest."""
    took = {
        path: await _median(http, path.format(**names), repetitions) for path in SCREENS[screen]
    }
    slowest = max(took, key=lambda path: took[path])
    return judged(f"{screen}, ms", took[slowest], SERVER_BOUND, slowest)


async def _fill(connection: "asyncpg.Connection[Any]", jobs: int) -> None:
    waiting = jobs * WAITING // 100
    await connection.execute(sql("forge_fill_mixed"), jobs - waiting)
    await connection.execute(sql("forge_claim_all"))
    await connection.execute(sql("forge_complete_all"))
    await connection.execute(sql("forge_fill_mixed"), waiting)
    await connection.execute(sql("dashboard_statistics"))
    await connection.execute(sql("forge_vacuum"))
    await connection.execute(sql("checkpoint"))


async def _median(http: httpx.AsyncClient, path: str, repetitions: int) -> float:
    """Return the median of some requests in milliseconds, after a first one."""
    took = []
    for _ in range(repetitions + 1):
        began = perf_counter()
        (await http.get(path)).raise_for_status()
        took.append((perf_counter() - began) * 1000)
    return median(took[1:])


async def _first_paint(address: str, repetitions: int) -> float | None:
    """Return the milliseconds from opening the list to its first row, the median of some."""
    if not _has_browser():
        return None
    from playwright.async_api import async_playwright

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    took = []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        for _ in range(repetitions):
            page = await browser.new_page()
            await page.goto(address)
            await page.wait_for_selector("nav[aria-label=Screens]")
            await page.evaluate("location.hash = '/jobs'")
            await page.wait_for_selector("tr[data-row]")
            began = perf_counter()
            await page.reload(wait_until="commit")
            await page.wait_for_selector("tr[data-row]")
            took.append((perf_counter() - began) * 1000)
            await page.close()
        await browser.close()
    return median(took)


def _has_browser() -> bool:
    return CHROMIUM.exists()


if __name__ == "__main__":
    main()
