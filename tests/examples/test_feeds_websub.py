"""WebSub: subscribe when a feed names a hub, renew daily, and verify signatures."""

from datetime import UTC, datetime, timedelta

import asyncpg
import httpx
import pytest
from examples.feeds.app import app
from examples.feeds.documents import Document
from examples.feeds.local_site import Site
from examples.feeds.websub import renew

from forge import ScheduleRecord
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

BLOG = "blog.atom"
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _hub(site: Site) -> None:
    for name in (BLOG, "other.atom"):
        site.documents[name] = Document("atom", "With a hub", hub=f"{site.address}/hub")
        site.publish(name, "first")


async def renewed(runs: int) -> ScheduleRecord:
    """Wait until renew_websub has run this many times."""

    async def has_run() -> ScheduleRecord | None:
        row = await app.schedules.get("renew_websub")
        return row if len(row.recent_runs) >= runs and row.running_since is None else None

    row = await until(has_run, 20, f"renew_websub has run {runs} times")
    assert row is not None
    return row


async def waits_for_its_tick() -> ScheduleRecord:
    """Wait until renew_websub has handled all requests of the feeds."""

    async def is_idle() -> ScheduleRecord | None:
        row = await app.schedules.get("renew_websub")
        is_planned = row.next_run_at is not None and row.next_run_at > datetime.now(UTC)
        return row if is_planned and row.running_since is None else None

    row = await until(is_idle, 20, "renew_websub waits for its tick")
    assert row is not None
    return row


async def test_a_feed_with_a_hub_is_subscribed_immediately(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    await reader.subscribe(BLOG)
    await start_worker()

    await until(lambda: site.verified, 20, "the hub has verified")

    feed = await reader.feed(BLOG)
    assert (feed["hub_url"], feed["topic_url"]) == (f"{site.address}/hub", site.url(BLOG))
    left = feed["websub_expires_at"] - datetime.now(UTC)
    assert 10 * DAY - left < timedelta(minutes=1)
    assert len(feed["websub_secret"]) > 32


async def test_each_hub_subscription_has_its_own_secret(
    reader: Reader, site: Site, psql: "asyncpg.Connection[object]"
) -> None:
    names = (BLOG, "other.atom")
    for name in names:
        await reader.subscribe(name)
    await psql.execute("update feeds set topic_url = url, hub_url = $1", f"{site.address}/hub")

    async with httpx.AsyncClient() as http:
        assert await renew(psql, http) == (2, [])

    one, other = [(await reader.feed(name))["websub_secret"] for name in names]
    assert one[:8] != other[:8]


async def test_a_push_fetches_the_feed_immediately(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    await reader.subscribe(BLOG)
    await start_worker()
    await until(lambda: site.verified, 20, "the hub has verified")

    site.publish(BLOG, "pushed")

    await reader.fetched(BLOG, times=2)
    assert await reader.titles(BLOG) == ["first", "pushed"]


async def test_a_push_without_the_right_signature_is_ignored(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    await reader.subscribe(BLOG)
    await start_worker()
    await until(lambda: site.verified, 20, "the hub has verified")
    before = await reader.fetched(BLOG)
    ((callback, _),) = site.pushed[site.url(BLOG)].items()

    async with httpx.AsyncClient() as http:
        for signature in ("", "sha256=0", "sha256=é"):
            headers = {"X-Hub-Signature": signature.encode()}
            assert (await http.post(callback, content=b"x", headers=headers)).status_code == 202

    assert (await reader.schedule(BLOG)).next_run_at == before.next_run_at


@pytest.mark.parametrize(
    "changed", [{"hub.topic": "http://elsewhere"}, {"hub.mode": "unsubscribe"}, {"feed": "999"}]
)
async def test_an_unrequested_subscription_is_not_confirmed(
    reader: Reader, site: Site, start_worker: StartWorker, changed: dict[str, str]
) -> None:
    await reader.subscribe(BLOG)
    await start_worker()
    await until(lambda: site.verified, 20, "the hub has verified")
    ((callback, _),) = site.pushed[site.url(BLOG)].items()
    query = {"hub.mode": "subscribe", "hub.topic": site.url(BLOG), "hub.challenge": "c"} | changed
    address = callback.rpartition("/")[0] + "/" + query.pop("feed", callback.rpartition("/")[2])

    async with httpx.AsyncClient() as http:
        answer = await http.get(address, params=query | {"hub.lease_seconds": "1"})

    assert answer.status_code == 404
    assert (await reader.feed(BLOG))["websub_expires_at"] > datetime.now(UTC) + 9 * DAY


async def test_renewal_runs_daily_and_renews_what_expires_within_a_day(
    reader: Reader, site: Site, start_worker: StartWorker, psql: "asyncpg.Connection[object]"
) -> None:
    for name in (BLOG, "other.atom"):
        await reader.subscribe(name)
    await start_worker()
    await until(lambda: site.verified >= 2, 20, "the hub has verified both")
    for name in (BLOG, "other.atom"):
        await reader.fetched(name)
    before = await waits_for_its_tick()
    ends = "update feeds set websub_expires_at = now() + $2 where url = $1"
    await psql.execute(ends, site.url(BLOG), timedelta(hours=23))
    await psql.execute(ends, site.url("other.atom"), timedelta(hours=25))
    known, runs = site.verified, len(before.recent_runs)

    # Its tick of last night runs now.
    tick = before.next_run_at - DAY
    await psql.execute(
        "update forge_schedules set next_run_at = $1 where type = 'renew_websub'", tick
    )
    await app.schedules.enable("renew_websub")  # wakes the worker

    after = await renewed(runs + 1)
    await until(lambda: site.verified > known, 20, "the hub has verified")
    assert (before.next_run_at.hour, before.next_run_at.minute) == (4, 0)
    assert after.next_run_at == before.next_run_at
    assert after.recent_runs[0]["message"] == "1 renewed, 0 refused"
    assert (await reader.feed(BLOG))["websub_expires_at"] > datetime.now(UTC) + 9 * DAY
    assert (await reader.feed("other.atom"))["websub_expires_at"] < datetime.now(UTC) + 2 * DAY


async def test_a_feed_without_subscribers_is_not_renewed(
    reader: Reader, site: Site, start_worker: StartWorker, psql: "asyncpg.Connection[object]"
) -> None:
    await reader.subscribe(BLOG)
    await start_worker()
    await until(lambda: site.verified, 20, "the hub has verified")
    await reader.unsubscribe(BLOG)
    await psql.execute("update feeds set websub_expires_at = now()")
    runs = len((await waits_for_its_tick()).recent_runs)

    await app.schedules.run_now("renew_websub")

    assert (await renewed(runs + 1)).recent_runs[0]["message"] == "0 renewed, 0 refused"
    assert site.verified == 1


async def test_a_hub_that_rejects_counts_as_failure_and_is_retried(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    site.documents[BLOG].hub = f"{site.address}/no-hub"
    await reader.subscribe(BLOG)
    await start_worker()

    row = await renewed(1)

    assert row.consecutive_failures == 1
    assert "1 of 1 refused" in row.last_error
    assert row.next_run_at - row.last_run_at < timedelta(minutes=2)
