"""The steps of the demonstration. Each step waits until its effect is visible."""

import asyncio
import inspect
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from examples.feeds.app import app
from examples.feeds.documents import Document
from examples.feeds.local_site import Site
from examples.feeds.subscriptions import subscribe, unsubscribe

ANN, BOB = 1, 2
SECONDS = 60
SUMMARY = """
    select url, (select count(*) from subscriptions
                 where feed_id = feeds.id and unsubscribed_at is null) as subscribers,
           (select count(*) from entries where feed_id = feeds.id) as entries,
           consecutive_failures, last_status, next_fetch_at is not null as is_fetched
    from feeds where url like $1 || '%' order by url
"""

# Simulate a worker that disappeared six minutes ago: the run is open, the worker's row is gone.
LOSE_RUN = """
    update forge_schedules
    set running_since = now() - interval '6 minutes', last_heartbeat = null,
        next_run_at = now() - interval '6 minutes', worker_id = gen_random_uuid(), lease = lease + 1
    where type = 'fetch_feed' and key = $1 and running_since is null
    returning true
"""
# One statement: between two statements a fetch could change both rows.
STATE = """
    select schedule.enabled, schedule.next_run_at, feeds.next_fetch_at, schedule.running_since
    from feeds
    join forge_schedules as schedule
      on schedule.type = 'fetch_feed' and schedule.key = feeds.id::text
    where feeds.url = $1
"""


async def show_all(db: Any, site: Site) -> None:
    """Run every scene, then print a summary of the tables."""
    publish_first(site)
    await lose_run(db, site)
    await show_fetching(site)
    await show_backoff(db, site)
    await show_push(db, site)
    await show_renewal(db, site)
    await show_leaving(db, site)
    await show_recovery(db, site)
    show_summary(site, await db.fetch(SUMMARY, site.address))


def publish_first(site: Site) -> None:
    """Fill the site: RSS and Atom, one feed that fails for a while, one that is rate limited."""
    hub = f"{site.address}/hub"
    site.documents = {
        "news.rss": Document("rss", "News", ttl=60),
        "blog.atom": Document("atom", "A blog", hub=hub),
        "flaky.rss": Document("rss", "Flaky"),
        "busy.rss": Document("rss", "Busy"),
        "quiet.rss": Document("rss", "Quiet", ttl=1440),
    }
    for name in site.documents:
        site.publish(name, f"the first of {name}")
    site.troubles["flaky.rss"] = [(503, {}), (503, {}), (503, {})]
    site.troubles["busy.rss"] = [(429, {"Retry-After": "1"})]


async def show_fetching(site: Site) -> None:
    say("Ann and Bob subscribe to news.rss, Ann to blog.atom. Unchanged feeds return 304:")
    await follow(ANN, site, "news.rss")
    await follow(BOB, site, "news.rss")
    await follow(ANN, site, "blog.atom")
    await until(lambda: site.answers["news.rss", 304] >= 2 and site.verified, "304 and a hub")


async def show_backoff(db: Any, site: Site) -> None:
    say("Ann subscribes to two failing feeds. They back off, or wait as long as the server asks:")
    await follow(ANN, site, "flaky.rss")
    await follow(ANN, site, "busy.rss")
    for name in ("flaky.rss", "busy.rss"):
        await until(_is_kept(db, site.url(name)), f"{name} has recovered")
        for run in reversed((await _schedule(db, site, name)).recent_runs):
            say(f"    {name}: {run.get('message')}")


async def show_push(db: Any, site: Site) -> None:
    say("The blog publishes an entry. Its hub pushes it, so the feed is fetched at once:")
    site.publish("blog.atom", "the second of blog.atom")
    await until(lambda: site.answers["blog.atom", 200] >= 2, "the blog was fetched")


async def show_renewal(db: Any, site: Site) -> None:
    say("The hub subscription expires within a day. renew_websub runs daily; here it runs now:")
    known = site.verified
    await db.execute(
        "update feeds set websub_expires_at = now() + interval '1 hour' where url = $1",
        site.url("blog.atom"),
    )
    renewal = await app.schedules.run_now("renew_websub")
    await until(lambda: site.verified > known, "the subscription is renewed")
    say(f"    its next regular run is at {renewal.tick_at:%Y-%m-%d %H:%M} UTC")


async def lose_run(db: Any, site: Site) -> None:
    say("Ann subscribes to quiet.rss, and the worker that fetches it disappears:")
    await follow(ANN, site, "quiet.rss")
    await until(_is_kept(db, site.url("quiet.rss")), "the first fetch")
    key = (await _schedule(db, site, "quiet.rss")).key
    await until(lambda: db.fetchval(LOSE_RUN, key), "a run is lost")
    await print_schedule(db, site, "quiet.rss")


async def show_recovery(db: Any, site: Site) -> None:
    say("A run without a known worker is stale after five minutes. quiet.rss is fetched again:")
    runs: list[Any] = []

    async def is_recovered() -> bool:
        runs[:] = (await _schedule(db, site, "quiet.rss")).recent_runs
        return runs[0]["outcome"] == "completed" and any(map(_is_lost, runs))

    await until(is_recovered, "the stale run is recovered")
    lost = next(filter(_is_lost, runs))
    say(f"    quiet.rss: the run that started at {lost['started_at'][11:19]} is recorded as lost")
    await print_schedule(db, site, "quiet.rss")


async def print_schedule(db: Any, site: Site, name: str) -> None:
    """Print the state of the schedule and the feed."""
    row = await db.fetchrow(STATE, site.url(name))
    fields = [
        f"enabled = {str(row['enabled']).lower()}",
        f"next_run_at = {_clock(row['next_run_at'])}",
        f"next_fetch_at = {_clock(row['next_fetch_at'])}",
        f"running_since = {_clock(row['running_since'])}",
    ]
    say(f"    {name}: {', '.join(fields)}")


async def show_leaving(db: Any, site: Site) -> None:
    say("Ann leaves news.rss, but Bob still reads it. Bob leaves too: fetching stops.")
    left = await unsubscribe.call({"user_id": ANN, "url": site.url("news.rss")})
    assert left.is_fetched
    left = await unsubscribe.call({"user_id": BOB, "url": site.url("news.rss")})
    assert not left.is_fetched
    # A fetch that is already running finishes.
    await until(_is_idle("fetch_feed", str(left.feed_id)), "the last run is over")
    await print_schedule(db, site, "news.rss")
    fetches, others = site.fetches("news.rss"), site.fetches("blog.atom")
    await until(lambda: site.fetches("blog.atom") >= others + 2, "the blog was fetched twice")
    if site.fetches("news.rss") != fetches:
        raise RuntimeError("news.rss was fetched without a subscriber")
    say("Bob subscribes again. The feed is overdue, so it is fetched at once:")
    await follow(BOB, site, "news.rss")
    await until(lambda: site.fetches("news.rss") > fetches, "news.rss is fetched")
    await print_schedule(db, site, "news.rss")


def show_summary(site: Site, rows: Iterable[Any]) -> None:
    say(
        f"\n{'feed':<11} {'readers':>7} {'entries':>7} {'200':>4} {'304':>4} {'errors':>6}  fetched"
    )
    for row in rows:
        name = row["url"].rpartition("/")[2]
        errors = site.fetches(name) - site.answers[name, 200] - site.answers[name, 304]
        say(
            f"{name:<11} {row['subscribers']:>7} {row['entries']:>7} "
            f"{site.answers[name, 200]:>4} {site.answers[name, 304]:>4} {errors:>6}  "
            f"{'yes' if row['is_fetched'] else 'no'}"
        )


async def leave_all(db: Any) -> None:
    """End every subscription, including those of an interrupted demonstration."""
    for row in await db.fetch(
        "select user_id, url from subscriptions join feeds on feeds.id = feed_id"
        " where unsubscribed_at is null"
    ):
        await unsubscribe.call(dict(row))


async def follow(user_id: int, site: Site, name: str) -> None:
    await subscribe.call({"user_id": user_id, "url": site.url(name)})


async def until(is_true: Callable[[], Any], what: str) -> None:
    """Wait until the condition is true."""
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                found = is_true()
                if await found if inspect.isawaitable(found) else found:
                    return
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise RuntimeError(f"timed out after {SECONDS} s: {what}") from None


def say(line: str) -> None:
    print(line, flush=True)


def _is_lost(run: Any) -> bool:
    return bool(run["outcome"] == "lost")


def _clock(moment: datetime | None) -> str:
    return "NULL" if moment is None else f"{moment:%H:%M:%S}"


def _is_idle(type: str, key: str) -> Callable[[], Any]:
    async def is_idle() -> bool:
        return (await app.schedules.get(type, key)).running_since is None

    return is_idle


def _is_kept(db: Any, url: str) -> Callable[[], Any]:
    return lambda: db.fetchval("select last_status = 200 from feeds where url = $1", url)


async def _schedule(db: Any, site: Site, name: str) -> Any:
    feed_id = await db.fetchval("select id from feeds where url = $1", site.url(name))
    return await app.schedules.get("fetch_feed", str(feed_id))
