"""The feeds example end to end: real HTTP, a real worker, and its tables."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from examples.feeds.app import app, fetch_feed
from examples.feeds.documents import Document
from examples.feeds.local_site import Site
from examples.feeds.pace import Hints, Pace

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

CHECKOUT = Path(__file__).parents[2]
KINDS = ["news.rss", "blog.atom"]
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize("name", KINDS)
async def test_the_first_fetch_stores_the_entries_and_the_second_adds_none(
    reader: Reader, site: Site, start_worker: StartWorker, name: str
) -> None:
    site.publish(name, "second & last")
    await reader.subscribe(name)
    await start_worker()

    first = await reader.fetched(name)
    second = await reader.fetch_again(name)

    assert site.answers == {(name, 200): 1, (name, 304): 1}
    assert await reader.titles(name) == ["first", "second & last"]
    feed = await reader.feed(name)
    assert (feed["title"], feed["last_status"]) == (site.documents[name].title, 304)
    assert [run["message"] for run in second.recent_runs] == [
        "304, 0 new, again in 1:00:00",
        "200, 2 new, again in 1:00:00",
    ]
    assert second.id == first.id
    assert await reader.psql.fetchval("select count(*) from forge_jobs") == 0


@pytest.mark.parametrize("name", KINDS)
async def test_an_entry_is_stored_once(
    reader: Reader, site: Site, start_worker: StartWorker, name: str
) -> None:
    await reader.subscribe(name)
    await start_worker()
    await reader.fetched(name)

    site.publish(name, "new")
    row = await reader.fetch_again(name)

    assert site.answers[name, 200] == 2
    assert row.recent_runs[0]["message"].startswith("200, 1 new")
    assert await reader.titles(name) == ["first", "new"]


async def test_the_feed_sets_its_next_fetch(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    site.documents["news.rss"].ttl = 120
    made = await reader.subscribe("news.rss")
    await reader.check_mirror("news.rss")
    await start_worker()

    row = await reader.fetched("news.rss")

    assert made.next_fetch_at == row.created_at
    assert row.next_run_at - row.last_run_at == pytest.approx(2 * HOUR, abs=MINUTE)


async def test_a_feed_that_fails_backs_off_and_recovers(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    site.troubles["news.rss"] = [(503, {}), (500, {}), (404, {})]
    await reader.subscribe("news.rss")
    await start_worker()

    waits, failures = [], []
    row = await reader.fetched("news.rss")
    for _ in range(3):
        waits.append(row.next_run_at - row.last_run_at)
        failures.append((await reader.feed("news.rss"))["consecutive_failures"])
        row = await reader.fetch_again("news.rss")

    assert waits == [pytest.approx(n * MINUTE, abs=MINUTE / 2) for n in (5, 10, 20)]
    assert failures == [1, 2, 3]
    feed = await reader.feed("news.rss")
    assert (feed["consecutive_failures"], feed["last_error"]) == (0, None)
    assert await reader.titles("news.rss") == ["first"]
    assert row.next_run_at - row.last_run_at == pytest.approx(HOUR, abs=MINUTE)
    # The runs themselves succeeded.
    assert (row.consecutive_failures, row.last_error) == (0, None)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("as_date", [False, True])
async def test_retry_after_of_a_server_is_honoured(
    reader: Reader, site: Site, start_worker: StartWorker, status: int, as_date: bool
) -> None:
    date = format_datetime(datetime.now(UTC) + 2 * HOUR, usegmt=True)
    site.troubles["news.rss"] = [(status, {"Retry-After": date if as_date else "7200"})]
    await reader.subscribe("news.rss")
    await start_worker()

    row = await reader.fetched("news.rss")

    assert row.next_run_at - row.last_run_at == pytest.approx(2 * HOUR, abs=MINUTE)
    assert (await reader.feed("news.rss"))["last_status"] == status


async def test_invalid_feeds_and_unreachable_servers_are_failures_of_the_feed(
    reader: Reader, site: Site, start_worker: StartWorker
) -> None:
    site.troubles["news.rss"] = [(200, {"Content-Type": "text/html"})]
    await reader.subscribe("news.rss")
    address, site.address = site.address, "http://127.0.0.1:1"
    await reader.subscribe("nowhere")
    await start_worker()

    await reader.fetched("nowhere")
    nowhere = await reader.feed("nowhere")
    site.address = address
    await reader.fetched("news.rss")

    assert nowhere["last_error"].startswith("ConnectError")
    news = await reader.feed("news.rss")
    assert (news["last_error"], news["consecutive_failures"]) == (
        "cannot be parsed: neither RSS nor Atom",
        1,
    )


async def test_an_unexpected_error_is_counted_on_the_feed(
    reader: Reader, start_worker: StartWorker
) -> None:
    await reader.subscribe("news.rss")
    await reader.psql.execute("alter table entries add constraint odd check (title <> 'first')")
    await start_worker()

    row = await reader.fetched("news.rss")
    once = await reader.feed("news.rss")
    await reader.fetch_again("news.rss")
    twice = await reader.feed("news.rss")
    await reader.psql.execute("alter table entries drop constraint odd")
    await reader.fetch_again("news.rss")
    recovered = await reader.feed("news.rss")

    assert (row.consecutive_failures, row.next_run_at > row.last_run_at) == (1, True)
    assert [feed["consecutive_failures"] for feed in (once, twice, recovered)] == [1, 2, 0]
    assert "odd" in once["last_error"]
    assert recovered["last_error"] is None


async def test_the_feed_follows_changes_of_its_schedule(reader: Reader) -> None:
    made = await reader.subscribe("news.rss")

    await reader.make_overdue("news.rss")
    await reader.check_mirror("news.rss")
    await app.schedules.disable(fetch_feed, str(made.feed_id))

    assert (await reader.feed("news.rss"))["next_fetch_at"] is None


async def test_a_feed_is_fetched_repeatedly(
    reader: Reader, site: Site, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDS_MINUTE", "2ms")
    site.troubles["news.rss"] = [(503, {}), (503, {})]
    for name in KINDS:
        await reader.subscribe(name)
    await start_worker()

    await until(
        lambda: all(site.answers[name, 304] >= 3 for name in KINDS), 30, "each was fetched often"
    )

    assert [site.answers[name, 200] for name in KINDS] == [1, 1]
    assert site.answers["news.rss", 503] == 2
    assert await reader.psql.fetchval("select count(*) from forge_schedules") == 3


@pytest.mark.parametrize(
    ("hints", "wait"),
    [
        (Hints(), HOUR),
        (Hints(ttl_minutes=120), 2 * HOUR),
        (Hints(ttl_minutes=1), 15 * MINUTE),
        (Hints(max_age=3 * HOUR), 3 * HOUR),
        (Hints(max_age=3 * HOUR, ttl_minutes=600), 10 * HOUR),
        (Hints(max_age=timedelta(0)), HOUR),
        (Hints(max_age=365 * DAY), DAY),
    ],
)
def test_the_requested_interval_is_kept_within_limits(hints: Hints, wait: timedelta) -> None:
    assert Pace().after_success(hints) == wait


@pytest.mark.parametrize(
    ("failures", "retry_after", "wait"),
    [
        (1, None, 5 * MINUTE),
        (4, None, 40 * MINUTE),
        (100, None, DAY),
        (1, HOUR, HOUR),
        (1, MINUTE, 5 * MINUTE),
        (1, 365 * DAY, 7 * DAY),
    ],
)
def test_consecutive_failures_increase_the_backoff(
    failures: int, retry_after: timedelta | None, wait: timedelta
) -> None:
    assert Pace().after_failure(failures, retry_after) == wait


def test_without_a_terminal_the_demo_ends_by_itself(database_url: str) -> None:
    env = os.environ | {"FORGE_DATABASE_URL": database_url}
    env.pop("FEEDS_MINUTE", None)

    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-m", "examples.feeds"],
            cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

        assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
        summary = ended.stdout.rpartition("feed        readers")[2].splitlines()[1:]
        # A feed may be fetched while the summary is printed, which also prints a line.
        rows = [line for line in summary if re.match(r"\S+\.(rss|atom) ", line)]
        cells = {name: rest for name, *rest in map(str.split, rows)}
        assert [cells[name][0] for name in sorted(cells)] == ["1"] * 5  # readers
        assert [cells[name][1] for name in sorted(cells)] == ["2", *["1"] * 4]  # entries
        assert [cells[name][4] for name in sorted(cells)] == ["0", "1", "3", "0", "0"]  # errors
        assert all(int(row[3]) > 0 for row in cells.values())  # 304
        assert "flaky.rss: 503 Service Unavailable; failure 3 in a row" in ended.stdout
        clock = r"\d\d:\d\d:\d\d"
        left = rf"news.rss: enabled = false, next_run_at = {clock}, next_fetch_at = NULL"
        back = rf"news.rss: enabled = true, next_run_at = ({clock}), next_fetch_at = \1"
        stale = rf"quiet.rss: enabled = true, .*running_since = {clock}"
        recovered = rf"quiet.rss: the run that started at {clock} is recorded as lost"
        for line in (left, back, stale, recovered):
            assert re.search(line, ended.stdout), ended.stdout


def test_an_unreachable_database_is_reported_in_one_line() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "examples.feeds"],
        cwd=CHECKOUT,
        env=os.environ | {"FORGE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "FORGE_DATABASE_URL" in ended.stderr


def test_rss_uses_etags_and_atom_uses_dates() -> None:
    """Ensures that the tests above cover both: RSS uses only ETags, Atom only dates."""
    rss, atom = Document("rss", "a").answer("u", {}), Document("atom", "a").answer("u", {})

    assert ("etag" in rss.headers, "last-modified" in rss.headers) == (True, False)
    assert ("etag" in atom.headers, "last-modified" in atom.headers) == (False, True)
