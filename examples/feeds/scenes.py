"""What the demonstration shows, step by step; each step waits until it has come true."""

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

# As a worker that vanished six minutes ago leaves it: its run goes on, and its row is gone.
LOSE_RUN = """
    update forge_schedules
    set running_since = now() - interval '6 minutes', last_heartbeat = null,
        next_run_at = now() - interval '6 minutes', worker_id = gen_random_uuid(), lease = lease + 1
    where type = 'fetch_feed' and key = $1 and running_since is null
    returning true
"""
# In one statement: between two of them a fetch may move both.
STATE = """
    select schedule.enabled, schedule.next_run_at, feeds.next_fetch_at, schedule.running_since
    from feeds
    join forge_schedules as schedule
      on schedule.type = 'fetch_feed' and schedule.key = feeds.id::text
    where feeds.url = $1
"""


async def show_all(db: Any, site: Site) -> None:
    """Run every scene, then sum up what the tables say."""
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
    """Fill the site: RSS and Atom, one that fails for a while, one that is asked too often."""
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
    say("Ann and Bob subscribe to news.rss, Ann to blog.atom. What has not changed is a 304:")
    await follow(ANN, site, "news.rss")
    await follow(BOB, site, "news.rss")
    await follow(ANN, site, "blog.atom")
    await until(lambda: site.answers["news.rss", 304] >= 2 and site.verified, "304 and a hub")


async def show_backoff(db: Any, site: Site) -> None:
    say("Ann subscribes to two that fail. Each waits longer, or as long as it is asked to:")
    await follow(ANN, site, "flaky.rss")
    await follow(ANN, site, "busy.rss")
    for name in ("flaky.rss", "busy.rss"):
        await until(_is_kept(db, site.url(name)), f"{name} has recovered")
        for run in reversed((await _schedule(db, site, name)).recent_runs):
            say(f"    {name}: {run.get('message')}")


async def show_push(db: Any, site: Site) -> None:
    say("The blog publishes; its hub pushes, so that nobody waits for the next fetch:")
    site.publish("blog.atom", "the second of blog.atom")
    await until(lambda: site.answers["blog.atom", 200] >= 2, "the blog was fetched")


async def show_renewal(db: Any, site: Site) -> None:
    say("The hub's promise ends within a day. renew_websub runs daily; here it is hurried:")
    known = site.verified
    await db.execute(
        "update feeds set websub_expires_at = now() + interval '1 hour' where url = $1",
        site.url("blog.atom"),
    )
    renewal = await app.schedules.run_now("renew_websub")
    await until(lambda: site.verified > known, "the promise was renewed")
    say(f"    by the clock it runs again at {renewal.tick_at:%Y-%m-%d %H:%M} UTC")


async def lose_run(db: Any, site: Site) -> None:
    say("Ann subscribes to quiet.rss, and the worker that fetches it vanishes:")
    await follow(ANN, site, "quiet.rss")
    await until(_is_kept(db, site.url("quiet.rss")), "the first fetch")
    key = (await _schedule(db, site, "quiet.rss")).key
    await until(lambda: db.fetchval(LOSE_RUN, key), "a run is lost")
    await tell_schedule(db, site, "quiet.rss")


async def show_recovery(db: Any, site: Site) -> None:
    say("A run whose worker is unknown for five minutes is stale. quiet.rss is fetched again:")
    runs: list[Any] = []

    async def is_recovered() -> bool:
        runs[:] = (await _schedule(db, site, "quiet.rss")).recent_runs
        return runs[0]["outcome"] == "completed" and any(map(_is_lost, runs))

    await until(is_recovered, "the stale run is recovered")
    lost = next(filter(_is_lost, runs))
    say(f"    quiet.rss: the run that began at {lost['started_at'][11:19]} is recorded as lost")
    await tell_schedule(db, site, "quiet.rss")


async def tell_schedule(db: Any, site: Site, name: str) -> None:
    """Print what the schedule and the feed say."""
    row = await db.fetchrow(STATE, site.url(name))
    told = [
        f"enabled = {str(row['enabled']).lower()}",
        f"next_run_at = {_clock(row['next_run_at'])}",
        f"next_fetch_at = {_clock(row['next_fetch_at'])}",
        f"running_since = {_clock(row['running_since'])}",
    ]
    say(f"    {name}: {', '.join(told)}")


async def show_leaving(db: Any, site: Site) -> None:
    say("Ann leaves news.rss: Bob still reads it. Bob leaves, too: nobody fetches it any more.")
    left = await unsubscribe.call({"user_id": ANN, "url": site.url("news.rss")})
    assert left.is_fetched
    left = await unsubscribe.call({"user_id": BOB, "url": site.url("news.rss")})
    assert not left.is_fetched
    # One that was under way is finished.
    await until(_is_idle("fetch_feed", str(left.feed_id)), "the last run is over")
    await tell_schedule(db, site, "news.rss")
    fetches, others = site.fetches("news.rss"), site.fetches("blog.atom")
    await until(lambda: site.fetches("blog.atom") >= others + 2, "the blog was fetched twice")
    if site.fetches("news.rss") != fetches:
        raise RuntimeError("news.rss was fetched though nobody reads it")
    say("Bob comes back. Its time has passed meanwhile, so that it is fetched at once:")
    await follow(BOB, site, "news.rss")
    await until(lambda: site.fetches("news.rss") > fetches, "the news were fetched")
    await tell_schedule(db, site, "news.rss")


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
    """End every subscription, those of a run that was interrupted, too."""
    for row in await db.fetch(
        "select user_id, url from subscriptions join feeds on feeds.id = feed_id"
        " where unsubscribed_at is null"
    ):
        await unsubscribe.call(dict(row))


async def follow(user_id: int, site: Site, name: str) -> None:
    await subscribe.call({"user_id": user_id, "url": site.url(name)})


async def until(is_true: Callable[[], Any], what: str) -> None:
    """Wait until something is so."""
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                found = is_true()
                if await found if inspect.isawaitable(found) else found:
                    return
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise RuntimeError(f"waited {SECONDS} s in vain: {what}") from None


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
