"""The feeds example on a test database, with a test site and a worker."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from examples.feeds.app import app, fetch_feed
from examples.feeds.documents import Document
from examples.feeds.local_site import Site
from examples.feeds.subscriptions import Following, subscribe, unsubscribe
from examples.feeds.web import web
from examples.serving import serving

from forge import ScheduleRecord
from tests.apps import Work, make_app, work
from tests.examples.settings import on_database
from tests.faults.kit.process import until

__all__ = ["make_app", "work"]

SCHEMA = Path(__file__).parents[2] / "examples" / "feeds" / "schema.sql"
StartWorker = Callable[[], Awaitable[None]]


class Reader:
    """Subscribes to the feeds of the site, and reads the results."""

    def __init__(self, site: Site, psql: "asyncpg.Connection[Any]") -> None:
        self.site = site
        self.psql = psql

    async def subscribe(self, name: str, user: int = 1) -> Following:
        return await subscribe.call({"user_id": user, "url": self.site.url(name)})

    async def unsubscribe(self, name: str, user: int = 1) -> Following:
        return await unsubscribe.call({"user_id": user, "url": self.site.url(name)})

    async def feed(self, name: str) -> Any:
        found = await self.psql.fetchrow("select * from feeds where url = $1", self.site.url(name))
        assert found is not None
        return found

    async def schedule(self, name: str) -> ScheduleRecord:
        return await app.schedules.get(fetch_feed, str((await self.feed(name))["id"]))

    async def titles(self, name: str) -> list[str]:
        query = "select title from entries where feed_id = $1 order by guid"
        rows = await self.psql.fetch(query, (await self.feed(name))["id"])
        return [row["title"] for row in rows]

    async def make_overdue(self, name: str) -> None:
        """Move the next run into the past."""
        await self.psql.execute(
            "update forge_schedules set next_run_at = now() - interval '1 hour' where id = $1",
            (await self.schedule(name)).id,
        )

    async def fetched(self, name: str, times: int = 1) -> ScheduleRecord:
        """Wait for this many runs, and check that the feed agrees with its schedule."""

        async def is_over() -> ScheduleRecord | None:
            row = await self.schedule(name)
            return row if len(row.recent_runs) >= times and row.running_since is None else None

        row = await until(is_over, 20, f"{name} was fetched {times} times")
        assert row is not None
        await self.check_mirror(name)
        return row

    async def fetch_again(self, name: str) -> ScheduleRecord:
        """Fetch immediately, and wait for the end of the run."""
        runs = len((await self.schedule(name)).recent_runs)
        await app.schedules.run_now(fetch_feed, str((await self.feed(name))["id"]))
        return await self.fetched(name, runs + 1)

    async def check_mirror(self, name: str) -> None:
        feed, row = await self.feed(name), await self.schedule(name)
        assert feed["next_fetch_at"] == (row.next_run_at if row.enabled else None)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A site with a feed of each format."""
    made = Site()
    async with serving(made.asgi) as made.address:
        made.documents = {
            "news.rss": Document("rss", "News"),
            "blog.atom": Document("atom", "A blog"),
        }
        for name in made.documents:
            made.publish(name, "first")
        yield made


@pytest.fixture
async def reader(
    site: Site, database_url: str, psql: "asyncpg.Connection[Any]",
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Reader]:  # fmt: skip
    """The application on the test's database, with real intervals."""
    await psql.execute(SCHEMA.read_text())
    async with on_database(app, database_url), serving(web) as address:
        monkeypatch.setenv("FEEDS_PUBLIC_URL", address)
        yield Reader(site, psql)


@pytest.fixture
def start_worker(reader: Reader, work: Work) -> StartWorker:
    """Start a worker for the application; it ends before the application does."""

    async def start() -> None:
        await work(app)

    return start
