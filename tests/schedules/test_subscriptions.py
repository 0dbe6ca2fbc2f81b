"""A schedule is enabled while it has subscribers, also when they change concurrently."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from forge import Forge
from forge.store import schedules
from tests.faults.kit.process import until
from tests.schedules.conftest import LATER

Psql = asyncpg.Connection
SUBSCRIBED = "select from subscriptions where feed = $1 and unsubscribed_at is null"


@pytest.fixture
async def subscriptions(psql: "Psql[Any]") -> Callable[..., Awaitable[Any]]:
    await psql.execute("create table subscriptions (feed text, unsubscribed_at timestamptz)")
    return psql.execute


@pytest.mark.parametrize("query", [SUBSCRIBED, f"select exists ({SUBSCRIBED})", f"{SUBSCRIBED};"])
async def test_a_schedule_is_enabled_while_a_query_finds_something(
    app: Forge, subscriptions: Any, query: str
) -> None:
    await app.schedules.ensure("fetch_feed", "42", next_run_at=LATER)
    await subscriptions("insert into subscriptions values ('42'), ('42'), ('1')")

    kept = await app.schedules.sync_enabled("fetch_feed", "42", query, "42")
    await subscriptions("delete from subscriptions where feed = '42'")
    gone = await app.schedules.sync_enabled("fetch_feed", "42", query, "42")
    await subscriptions("insert into subscriptions values ('42')")
    back = await app.schedules.sync_enabled("fetch_feed", "42", query, "42")

    assert [row.enabled for row in (kept, gone, back)] == [True, False, True]
    assert {row.next_run_at for row in (kept, gone, back)} == {LATER}


@pytest.mark.parametrize("first", ["subscribe", "unsubscribe"])
async def test_the_last_to_leave_never_switches_off_what_somebody_just_subscribed_to(
    app: Forge, subscriptions: Any, database_url: str, psql: "Psql[Any]", first: str
) -> None:
    await app.schedules.ensure("fetch_feed", "42", next_run_at=LATER)
    await subscriptions("insert into subscriptions values ('42')")
    joining, leaving = [await asyncpg.connect(database_url) for _ in range(2)]
    reached, other_waits = asyncio.Event(), asyncio.Event()

    async def join() -> None:
        async with joining.transaction():
            await joining.execute("insert into subscriptions values ('42')")
            if first == "unsubscribe":
                await reached.wait()
            await app.schedules.enable("fetch_feed", "42", conn=joining)
            if first == "subscribe":
                reached.set()
                await other_waits.wait()

    async def leave() -> None:
        async with leaving.transaction():
            if first == "subscribe":
                await reached.wait()
            await leaving.execute(
                "update subscriptions set unsubscribed_at = now() "
                "where unsubscribed_at is null and ctid = '(0,1)'"
            )
            if first == "unsubscribe":
                # The lock is taken, the decision not yet made, when the other comes.
                found = await leaving.fetchval(
                    schedules.find("", "", None).sql, "fetch_feed", "42", None
                )
                await leaving.fetch(schedules.lock(found).sql, found)
                reached.set()
                await other_waits.wait()
            await app.schedules.sync_enabled("fetch_feed", "42", SUBSCRIBED, "42", conn=leaving)

    async def release_when_the_second_waits() -> None:
        await until(lambda: _somebody_waits(psql), 15, "the second waits for the first")
        other_waits.set()

    await asyncio.wait_for(asyncio.gather(join(), leave(), release_when_the_second_waits()), 20)

    row = await app.schedules.get("fetch_feed", "42")
    assert await psql.fetchval(f"select exists ({SUBSCRIBED})", "42")
    assert row.enabled
    await joining.close()
    await leaving.close()


async def test_deciding_in_one_statement_would_lose_a_subscription(
    app: Forge, subscriptions: Any, database_url: str, psql: "Psql[Any]"
) -> None:
    """Why the lock comes first: S3's single UPDATE decides by what it saw before it waited."""
    await app.schedules.ensure("fetch_feed", "42", next_run_at=LATER)
    joining, leaving = [await asyncpg.connect(database_url) for _ in range(2)]
    in_one = f"update forge_schedules set enabled = exists ({SUBSCRIBED}) where type = 'fetch_feed'"

    async with joining.transaction():
        await app.schedules.enable("fetch_feed", "42", conn=joining)
        await joining.execute("insert into subscriptions values ('42')")
        left = asyncio.create_task(leaving.execute(in_one, "42"))
        await until(lambda: _somebody_waits(psql), 15, "the update waits for the subscriber")
    await left

    assert not (await app.schedules.get("fetch_feed", "42")).enabled
    synced = await app.schedules.sync_enabled("fetch_feed", "42", SUBSCRIBED, "42")
    assert synced.enabled
    await joining.close()
    await leaving.close()


async def _somebody_waits(psql: "Psql[Any]") -> bool:
    waiting = (
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and wait_event_type = 'Lock'"
    )
    return bool(await psql.fetchval(waiting))
