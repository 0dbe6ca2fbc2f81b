"""What each screen costs: requests, bytes, and buffers of the database among many jobs."""

from typing import Any, NamedTuple

from playwright.async_api import Page, Request

from tests.browser.dashboard.conftest import Dashboard
from tests.browser.dashboard.screens import fill
from tests.browser.dashboard.test_everywhere import settle
from tests.faults.kit.process import until

# Finished jobs of other types, so that a scan of the table would be seen.
CROWD = (
    "insert into forge_jobs (job_type, scheduled_at) select 'crowd_' || n % 20, 'infinity' "
    "from generate_series(1, 30000) as n"
)
BUFFERS = """
    select coalesce(sum(shared_blks_hit + shared_blks_read), 0)::int from pg_stat_statements
    where userid = (select oid from pg_roles where rolname = 'forge_api')
      and dbid = (select oid from pg_database where datname = current_database())
      and query not ilike '%typeinfo_tree%'  -- once per connection, by the driver
"""
# What one answer makes the page request next has been requested after two.
TWO_FRAMES = "() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))"


class Cost(NamedTuple):
    """What a screen costs when it is opened."""

    requests: int
    kilobytes: int
    buffers: int


# Half as much again as was measured; screens without a line have that of the others.
DEAD_LETTERS = Cost(requests=4, kilobytes=4, buffers=2600)
BOUNDS = {
    "other": Cost(requests=8, kilobytes=26, buffers=1000),
    "overview": Cost(requests=10, kilobytes=30, buffers=17_500),
    # Counts up to 10,000 jobs of each status.
    "jobs": Cost(requests=3, kilobytes=68, buffers=13_000),
    "jobs-empty": Cost(requests=3, kilobytes=6, buffers=1300),
    "dead-letters": DEAD_LETTERS,
    "dead-letters-empty": DEAD_LETTERS,
    "cause": DEAD_LETTERS,
}


async def test_every_screen_is_cheap_among_many_jobs(dashboard: Dashboard, psql: Any) -> None:
    await psql.execute("create extension pg_stat_statements")
    await psql.execute(CROWD)
    await psql.execute("vacuum analyze forge_jobs")
    addresses = await fill(dashboard)
    page = await dashboard.open("/")
    # Otherwise the figures of the navigation, which are read every 15 s, count for some screen.
    await page.get_by_role("button", name="live", exact=True).click()
    costs = {name: await cost_of(dashboard, page, psql, addresses[name]) for name in addresses}

    dear = [
        f"{name}: {cost}"
        for name, cost in costs.items()
        if any(a > b for a, b in zip(cost, BOUNDS.get(name, BOUNDS["other"]), strict=True))
    ]
    assert dear == []


async def cost_of(dashboard: Dashboard, page: Page, psql: Any, address: str) -> Cost:
    """Open a screen from an empty one, and return what it costs until it shows everything."""
    asked: list[Request] = []
    ended: list[Request] = []

    def ask(request: Request) -> None:
        asked.append(request)

    def end(request: Request) -> None:
        ended.append(request)

    async def is_idle() -> bool:
        await page.evaluate(TWO_FRAMES)
        return set(asked) <= set(ended)

    await dashboard.go(page, "/no-such-screen")
    await psql.execute("select pg_stat_statements_reset()")
    page.on("request", ask)
    page.on("requestfinished", end)
    page.on("requestfailed", end)
    await dashboard.go(page, address)
    await settle(page)
    await until(is_idle, 30, "all requests are answered")
    page.remove_listener("request", ask)
    page.remove_listener("requestfinished", end)
    page.remove_listener("requestfailed", end)
    answered = [one for one in asked if "api/" in one.url and one.failure is None]
    sizes = [await request.sizes() for request in answered]
    bytes = sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes)
    return Cost(len(sizes), round(bytes / 1000), await psql.fetchval(BUFFERS))
