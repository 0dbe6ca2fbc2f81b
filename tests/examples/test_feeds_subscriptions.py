"""Subscribing and unsubscribing, concurrently and during a run."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import asyncpg
import pytest
from examples.feeds.app import app
from examples.feeds.local_site import Site
from examples.feeds.subscriptions import subscribe, unsubscribe
from starlette.requests import Request
from starlette.responses import Response

from forge import Rejected
from forge.calls.context import CallIdentity, MutationContext
from tests.examples.feed_reader import (
    Reader,
    StartWorker,
    make_app,
    reader,
    site,
    start_worker,
    work,
)
from tests.faults.kit.process import until

__all__ = ["make_app", "reader", "site", "start_worker", "work"]

NEWS = "news.rss"
USERS = 8
WAITING = """
    select count(*) from pg_stat_activity
    where wait_event_type = 'Lock' and datname = current_database()
"""
READERS = "select user_id from subscriptions where unsubscribed_at is null"


async def test_subscribing_twice_creates_one_subscription_and_one_schedule(reader: Reader) -> None:
    first = await reader.subscribe(NEWS)
    second = await reader.subscribe(NEWS)
    third = await reader.subscribe(NEWS, user=2)

    assert first == second == third
    counts = (
        "select (select count(*) from {}), (select count(*) from {}), (select count(*) from {})"
    )
    tables = ("feeds", "subscriptions", "forge_schedules")
    assert tuple(await reader.psql.fetchrow(counts.format(*tables))) == (1, 2, 1)
    await reader.check_mirror(NEWS)


async def test_the_last_unsubscribe_stops_fetching_and_keeps_the_next_run(
    reader: Reader, start_worker: StartWorker
) -> None:
    await reader.subscribe(NEWS, user=1)
    await reader.subscribe(NEWS, user=2)
    await start_worker()
    planned = (await reader.fetched(NEWS)).next_run_at

    one_left = await reader.unsubscribe(NEWS, user=1)
    await reader.check_mirror(NEWS)
    none_left = await reader.unsubscribe(NEWS, user=2)
    await reader.check_mirror(NEWS)

    assert (one_left.is_fetched, one_left.next_fetch_at) == (True, planned)
    assert (none_left.is_fetched, none_left.next_fetch_at) == (False, None)
    assert (await reader.schedule(NEWS)).next_run_at == planned


async def test_a_user_without_a_subscription_cannot_unsubscribe(reader: Reader) -> None:
    await reader.subscribe(NEWS)
    await reader.unsubscribe(NEWS)

    for user in (1, 2):
        with pytest.raises(Rejected, match="Subscription not found"):
            await reader.unsubscribe(NEWS, user=user)


async def test_an_address_that_cannot_be_fetched_is_rejected(reader: Reader) -> None:
    with pytest.raises(Rejected, match="must begin with http"):
        await subscribe.call({"user_id": 1, "url": "file:///etc/passwd"})

    assert await reader.psql.fetchval("select count(*) from feeds") == 0


async def test_resubscribing_in_time_keeps_the_next_run(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    await reader.subscribe(NEWS)
    await start_worker()
    planned = (await reader.fetched(NEWS)).next_run_at
    await reader.unsubscribe(NEWS)

    back = await reader.subscribe(NEWS)

    assert back.next_fetch_at == planned
    await reader.check_mirror(NEWS)
    assert site.fetches(NEWS) == 1


async def test_resubscribing_late_fetches_immediately(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    await reader.subscribe(NEWS)
    await start_worker()
    await reader.fetched(NEWS)
    await reader.unsubscribe(NEWS)
    await reader.make_overdue(NEWS)
    # Without subscribers it is not fetched, while others are.
    await reader.subscribe("blog.atom")
    await reader.fetched("blog.atom")
    assert site.fetches(NEWS) == 1

    await reader.subscribe(NEWS)

    await reader.fetched(NEWS, times=2)
    assert site.answers[NEWS, 304] == 1


class Gate:
    """Holds back the site's responses until it is opened."""

    def __init__(self, site: Site) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self._answer = site._feed
        site.asgi.routes[0].app = self._asgi  # type: ignore[attr-defined]

    async def _asgi(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.set()
        await self.opened.wait()
        answer: Response = await self._answer(Request(scope, receive))
        await answer(scope, receive, send)


async def test_the_last_unsubscribe_during_a_run_lets_it_finish(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    gate = Gate(site)
    await reader.subscribe(NEWS)
    await start_worker()
    await asyncio.wait_for(gate.reached.wait(), 20)

    left = await reader.unsubscribe(NEWS)
    during = await reader.schedule(NEWS)
    gate.opened.set()
    after = await reader.fetched(NEWS)

    assert not left.is_fetched
    assert (during.enabled, during.running_since is not None) == (False, True)
    assert (after.enabled, after.recent_runs[0]["outcome"]) == (False, "completed")
    assert await reader.titles(NEWS) == ["first"]
    assert (await reader.feed(NEWS))["next_fetch_at"] is None
    assert after.next_run_at > after.last_run_at
    await reader.make_overdue(NEWS)
    await reader.subscribe("blog.atom")
    await reader.fetched("blog.atom")
    assert site.fetches(NEWS) == 1


async def test_resubscribing_during_a_run_keeps_the_schedule_enabled(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    gate = Gate(site)
    await reader.subscribe(NEWS)
    await start_worker()
    await asyncio.wait_for(gate.reached.wait(), 20)

    await reader.unsubscribe(NEWS)
    await reader.subscribe(NEWS)
    gate.opened.set()

    row = await reader.fetched(NEWS)
    assert row.enabled
    assert row.next_run_at > row.last_run_at
    assert site.fetches(NEWS) == 1


Act = Callable[..., Awaitable[Any]]


@pytest.mark.parametrize("first", ["subscribe", "unsubscribe"])
async def test_a_subscribe_during_the_last_unsubscribe_is_kept(
    reader: Reader, database_url: str, first: str
) -> None:
    """The second transaction waits for the first one's commit, and sees it."""
    await reader.subscribe(NEWS, user=1)
    acts = [(subscribe, 2), (unsubscribe, 1)]
    (ahead, ahead_user), (behind, behind_user) = acts if first == "subscribe" else acts[::-1]
    url = reader.site.url(NEWS)
    conn = await asyncpg.connect(database_url)
    transaction = conn.transaction()
    await transaction.start()
    await ahead(MutationContext(app.dispatcher, CallIdentity(), conn), user_id=ahead_user, url=url)

    second = asyncio.create_task(behind.call({"user_id": behind_user, "url": url}))
    await until(lambda: reader.psql.fetchval(WAITING), 20, "the second one waits")
    await transaction.commit()
    await asyncio.wait_for(second, 20)
    await conn.close()

    assert (await reader.schedule(NEWS)).enabled
    await reader.check_mirror(NEWS)
    rows = await reader.psql.fetch(READERS)
    assert [row["user_id"] for row in rows] == [2]


async def test_concurrent_subscribes_and_unsubscribes_during_a_fetch_are_consistent(
    reader: Reader, site: Site, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No deadlock, and at the end the feed is fetched if it has a subscriber."""
    monkeypatch.setenv("FEEDS_MINUTE", "1ms")
    await reader.subscribe(NEWS, user=0)
    await start_worker()

    async def subscribe_and_unsubscribe(user: int) -> None:
        for _ in range(10):
            await reader.subscribe(NEWS, user)
            await reader.unsubscribe(NEWS, user)

    await asyncio.gather(
        *map(subscribe_and_unsubscribe, range(1, USERS + 1)), subscribe_and_unsubscribe(0)
    )

    async def is_idle() -> bool:
        return (await reader.schedule(NEWS)).running_since is None

    await until(is_idle, 20, "the last run is over")
    assert not (await reader.schedule(NEWS)).enabled
    await reader.check_mirror(NEWS)
    fetches = site.fetches(NEWS)
    await asyncio.gather(*(reader.subscribe(NEWS, user) for user in range(USERS)))
    await until(lambda: site.fetches(NEWS) > fetches, 20, "it is fetched again")

    async def is_stored() -> bool:
        return await reader.psql.fetchval("select count(*) from entries") == 1

    await until(is_stored, 20, "what was fetched is stored, once")


async def test_concurrent_changes_of_one_user_do_not_deadlock(reader: Reader) -> None:
    async def again(act: Act) -> None:
        for _ in range(20):
            with suppress(Rejected):  # unsubscribed before subscribing
                await act(NEWS)

    await asyncio.gather(*(again(act) for act in 3 * (reader.subscribe, reader.unsubscribe)))

    is_read = await reader.psql.fetchval("select unsubscribed_at is null from subscriptions")
    assert (await reader.schedule(NEWS)).enabled == is_read
    await reader.check_mirror(NEWS)
