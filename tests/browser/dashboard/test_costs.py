"""What each screen costs: requests, bytes, and buffers of the database among many jobs."""

from typing import Any, NamedTuple

from playwright.async_api import Page, Request

from tests.browser.dashboard.conftest import Dashboard
from tests.browser.dashboard.screens import fill
from tests.browser.dashboard.test_everywhere import settle

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
      and query not ilike '%with recursive lanes%'  -- the backlog: it reads all that waits
"""


class Cost(NamedTuple):
    """What a screen costs when it is opened."""

    requests: int
    kilobytes: int
    buffers: int


# At most, by the name of the screen; others have those of the last line.
# These count up to 10,000 live jobs, again every few seconds.
BOUNDS = {
    "other": Cost(requests=8, kilobytes=60, buffers=4000),
    "overview": Cost(requests=12, kilobytes=60, buffers=30_000),
    "jobs": Cost(requests=3, kilobytes=60, buffers=30_000),
}


async def test_every_screen_is_cheap_among_many_jobs(dashboard: Dashboard, psql: Any) -> None:
    await psql.execute("create extension pg_stat_statements")
    await psql.execute(CROWD)
    await psql.execute("vacuum analyze forge_jobs")
    addresses = await fill(dashboard)
    page = await dashboard.open("/")
    costs = {name: await cost_of(dashboard, page, psql, addresses[name]) for name in addresses}

    dear = {
        name: cost
        for name, cost in costs.items()
        if any(a > b for a, b in zip(cost, BOUNDS.get(name, BOUNDS["other"]), strict=True))
    }
    assert dear == {}, costs


async def cost_of(dashboard: Dashboard, page: Page, psql: Any, address: str) -> Cost:
    """Open a screen from an empty one, and return what it costs until it shows everything."""
    done: list[Request] = []

    def note(request: Request) -> None:
        if "/_api/" in request.url or "/api/" in request.url:
            done.append(request)

    await dashboard.go(page, "/no-such-screen")
    await settle(page)
    await psql.execute("select pg_stat_statements_reset()")
    page.on("requestfinished", note)
    await dashboard.go(page, address)
    await settle(page)
    await page.wait_for_load_state("networkidle")
    page.remove_listener("requestfinished", note)
    sizes = [await request.sizes() for request in done]
    bytes = sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes)
    return Cost(len(done), round(bytes / 1000), await psql.fetchval(BUFFERS))
