"""What a query may look like by which `sync_enabled` decides."""

from typing import Any

import asyncpg
import pytest

from forge import Forge

IN_LINES = """
    select 1
    from subscriptions
    where feed = $1
"""


@pytest.fixture
async def feed(app: Forge, psql: "asyncpg.Connection[Any]") -> str:
    """A feed that has a subscriber."""
    await psql.execute("create table subscriptions (feed text, muted boolean)")
    await psql.execute("insert into subscriptions values ('42', false)")
    await app.schedules.ensure("fetch_feed", "42")
    await app.schedules.ensure("fetch_feed", "7")
    return "42"


@pytest.mark.parametrize(
    "query",
    [
        IN_LINES,
        f"{IN_LINES};",
        "select 1 from subscriptions where feed = $1 -- any subscriber",
        "with theirs as (select * from subscriptions where feed = $1) select * from theirs",
        "select from subscriptions where feed = $1",
        "select exists (select from subscriptions where feed = $1)",
        "select count(*) > 0 from subscriptions where feed = $1",
    ],
    ids=["lines", "semicolon", "comment", "with", "no columns", "exists", "count"],
)
async def test_a_query_may_be_written_as_people_write_them(
    app: Forge, feed: str, query: str
) -> None:
    has_one = await app.schedules.sync_enabled("fetch_feed", feed, query, feed)
    has_none = await app.schedules.sync_enabled("fetch_feed", "7", query, "7")

    assert (has_one.enabled, has_none.enabled) == (True, False)


async def test_a_row_that_begins_with_false_is_a_row(app: Forge, feed: str) -> None:
    """Only a lone false, as of EXISTS, says that there is nothing."""
    query = "select muted, feed from subscriptions where feed = $1"

    row = await app.schedules.sync_enabled("fetch_feed", feed, query, feed)

    assert row.enabled
