"""The verbs of schedules: ensure, enable, disable, run_now, get, list, on any connection."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import psycopg
import pytest
from pydantic import BaseModel

from forge import Forge, InvalidPayload, InvalidValue, ScheduleContext, UnknownSchedule
from tests.schedules.conftest import LATER

Psql = asyncpg.Connection


async def test_ensure_makes_a_schedule_that_is_due_at_once(app: Forge) -> None:
    row = await app.schedules.ensure("fetch_feed", "42", {"feed_id": 42})

    assert (row.type, row.key, row.payload, row.enabled) == (
        "fetch_feed",
        "42",
        {"feed_id": 42},
        True,
    )
    assert row.next_run_at == row.created_at
    assert (row.running_since, row.last_run_at, row.lease, row.priority) == (None, None, 0, 50)


async def test_ensure_again_changes_nothing(app: Forge) -> None:
    first = await app.schedules.ensure("fetch_feed", "42", {"n": 1}, next_run_at=LATER)

    second = await app.schedules.ensure("fetch_feed", "42", next_run_at=LATER + timedelta(days=1))

    assert second.id == first.id
    assert second.next_run_at == LATER
    assert second.payload == {"n": 1}


@pytest.mark.parametrize("again", ["ensure", "enable"])
async def test_re_enabling_keeps_the_old_time(app: Forge, again: str) -> None:
    await app.schedules.ensure("fetch_feed", "42", next_run_at=LATER)
    disabled = await app.schedules.disable("fetch_feed", "42")

    row = await getattr(app.schedules, again)("fetch_feed", "42")

    assert (disabled.enabled, disabled.next_run_at) == (False, LATER)
    assert (row.enabled, row.next_run_at) == (True, LATER)


@pytest.mark.parametrize("again", ["ensure", "enable"])
@pytest.mark.parametrize("missed", ["once", "skip", "all"])
async def test_one_whose_time_has_passed_while_disabled_is_due_at_once_and_once(
    app: Forge, psql: "Psql[Any]", again: str, missed: str
) -> None:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    await app.schedules.ensure("tick", next_run_at=past, every="1h", missed=missed)
    await app.schedules.disable("tick")

    row = await getattr(app.schedules, again)("tick")

    assert row.next_run_at <= await psql.fetchval("select now()")
    # A policy that counts what was missed must not count the time in which nothing was wanted.
    assert (row.next_run_at == past) == (missed == "once")


@pytest.mark.parametrize("again", ["ensure", "enable"])
@pytest.mark.parametrize("missed", ["skip", "all"])
@pytest.mark.parametrize("jitter", [None, "10m"])
async def test_the_grid_of_every_survives_disabling(
    app: Forge, psql: "Psql[Any]", again: str, missed: str, jitter: str | None
) -> None:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    given: dict[str, Any] = {} if jitter is None else {"jitter": jitter}
    await app.schedules.ensure("tick", next_run_at=past, every="1h", missed=missed, **given)
    await psql.execute(
        "update forge_schedules set tick_at = next_run_at, "
        "next_run_at = next_run_at + interval '7 minutes' where jitter is not null"
    )
    await app.schedules.disable("tick")

    row = await getattr(app.schedules, again)("tick")

    now = await psql.fetchval("select now()")
    assert row.tick_at is not None
    assert now - timedelta(hours=1) <= row.tick_at <= now
    assert (row.tick_at - past) % timedelta(hours=1) == timedelta(0)


async def test_a_cron_expression_without_a_zone_keeps_that_of_the_row(app: Forge) -> None:
    await app.schedules.ensure("tick", cron="0 3 * * *", tz="Asia/Tokyo")

    row = await app.schedules.ensure("tick", cron="0 4 * * *")

    assert (row.cron, row.tz) == ("0 4 * * *", "Asia/Tokyo")
    assert row.next_run_at is not None
    assert row.next_run_at.astimezone(UTC).hour == 19


async def test_a_cron_expression_without_a_zone_has_that_of_its_type(app: Forge) -> None:
    @app.cron("0 3 * * *", tz="Asia/Tokyo", type="nightly")
    async def nightly(ctx: ScheduleContext) -> None: ...

    row = await app.schedules.ensure("nightly", "other", cron="0 4 * * *")

    assert row.tz == "Asia/Tokyo"


async def test_another_rule_plans_anew_and_the_same_rule_does_not(app: Forge) -> None:
    await app.schedules.ensure("tick", cron="0 0 1 1 *", tz="Europe/Paris", next_run_at=LATER)

    same = await app.schedules.ensure("tick", cron="0 0 1 1 *", tz="Europe/Paris")
    other = await app.schedules.ensure("tick", cron="0 0 1 1 *", tz="Asia/Tokyo")
    every = await app.schedules.ensure("tick", every="1h")

    assert same.next_run_at == LATER
    assert (other.next_run_at.month, other.next_run_at.day, other.next_run_at.hour) == (12, 31, 15)
    assert (every.cron, every.every) == (None, timedelta(hours=1))
    assert every.next_run_at == every.updated_at


async def test_what_is_not_asked_for_stays(app: Forge) -> None:
    await app.schedules.ensure(
        "tick", every="1h", missed="all", jitter="5s", priority="high", timeout="2m",
        worker_capability="gpu", payload={"n": 1},
    )  # fmt: skip

    row = await app.schedules.ensure("tick", priority="low", every=None)

    assert row.priority == 25
    assert (row.every, row.missed, row.jitter) == (
        timedelta(hours=1),
        "all",
        timedelta(seconds=5),
    )
    assert (row.timeout, row.worker_capability, row.payload) == (
        timedelta(minutes=2),
        "gpu",
        {"n": 1},
    )


async def test_a_new_schedule_has_the_defaults_of_its_type(app: Forge) -> None:
    @app.schedule("tick", every="1h", missed="skip", priority="high", worker_capability="gpu")
    async def tick(ctx: ScheduleContext) -> None: ...

    row = await app.schedules.ensure(tick)
    own = await app.schedules.ensure(tick, "own", every="1m")
    again = await app.schedules.ensure(tick, "own")

    assert (row.every, row.missed, row.priority) == (timedelta(hours=1), "skip", 75)
    assert row.worker_capability == "gpu"
    assert own.every == again.every == timedelta(minutes=1)


async def test_keys_are_apart_by_type_and_tenant(app: Forge) -> None:
    rows = [
        await app.schedules.ensure("a", "k"),
        await app.schedules.ensure("b", "k"),
        await app.schedules.ensure("a", "k", tenant_id=1),
        await app.schedules.ensure("a", "k", tenant_id=2),
        await app.schedules.ensure("a"),
    ]

    assert len({row.id for row in rows}) == 5
    assert (await app.schedules.get("a", "k", tenant_id=2)).id == rows[3].id
    assert (await app.schedules.get("a", "k")).id == rows[0].id


async def test_many_who_ensure_at_once_make_one_row(app: Forge, psql: "Psql[Any]") -> None:
    rows = await asyncio.gather(
        *(app.schedules.ensure("fetch_feed", "42", cron="0 3 * * *") for _ in range(20))
    )

    assert len({row.id for row in rows}) == 1
    assert await psql.fetchval("select count(*) from forge_schedules") == 1


async def test_the_payload_is_checked_by_the_type_that_is_known(app: Forge) -> None:
    class Feed(BaseModel):
        feed_id: int

    @app.schedule("fetch_feed")
    async def fetch_feed(ctx: ScheduleContext, payload: Feed) -> None: ...

    row = await app.schedules.ensure("fetch_feed", "42", Feed(feed_id=42))

    assert row.payload == {"feed_id": 42}
    with pytest.raises(InvalidPayload, match=r"\$\.feed_id"):
        await app.schedules.ensure("fetch_feed", "43", {"feed_id": "x"})


@pytest.mark.parametrize("verb", ["enable", "disable", "run_now", "get"])
async def test_a_schedule_that_is_not_there_is_said_so(app: Forge, verb: str) -> None:
    with pytest.raises(UnknownSchedule, match=r"no schedule fetch_feed 42 of tenant 7; make it"):
        await getattr(app.schedules, verb)("fetch_feed", "42", tenant_id=7)


async def test_a_disabled_one_is_not_run(app: Forge) -> None:
    await app.schedules.ensure("tick")
    await app.schedules.disable("tick")

    with pytest.raises(InvalidValue, match="enable it first"):
        await app.schedules.run_now("tick")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"every": "1h", "cron": "0 3 * * *"}, "leave one out"),
        ({"every": "0s"}, "more than zero"),
        ({"cron": "0 3 * *"}, "write five fields"),
        ({"cron": "0 0 30 2 *"}, "not a cron expression"),
        ({"cron": "0 3 * * *", "tz": "Europe/Atlantis"}, "no time zone 'Europe/Atlantis'"),
        ({"tz": "Europe/Paris"}, "tz belongs to cron"),
        ({"missed": "never"}, "'once', 'skip', 'all'"),
        ({"next_run_at": datetime(2130, 1, 1)}, "next_run_at .* has no time zone; use datetime"),
        ({"next_run_at": "tomorrow"}, "next_run_at must be a datetime"),
        ({"priority": 60}, "priority must be one of"),
        ({"interval": "1h"}, "it takes next_run_at, every, cron"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_it_is_written(
    app: Forge, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidValue, match=said):
        await app.schedules.ensure("tick", **wrong)

    assert await app.schedules.list() == []


async def test_a_list_is_paged_and_filtered(app: Forge) -> None:
    made = [await app.schedules.ensure("a", str(n), tenant_id=n % 2) for n in range(5)]
    await app.schedules.ensure("b")
    await app.schedules.disable("a", "4", tenant_id=0)

    first = await app.schedules.list("a", limit=3)
    rest = await app.schedules.list("a", limit=3, before=first[-1].id)

    assert [row.id for row in first + rest] == sorted((row.id for row in made), reverse=True)
    assert {row.key for row in await app.schedules.list("a", enabled=False)} == {"4"}
    assert {row.key for row in await app.schedules.list(tenant_id=1)} == {"1", "3"}


async def test_a_verb_in_the_callers_transaction_goes_with_it(
    app: Forge, psql: "Psql[Any]"
) -> None:
    await app.schedules.ensure("kept", next_run_at=LATER)

    transaction = psql.transaction()
    await transaction.start()
    await app.schedules.ensure("gone", conn=psql)
    await app.schedules.disable("kept", conn=psql)
    within = await app.schedules.get("kept", conn=psql)
    await transaction.rollback()

    assert not within.enabled
    assert [row.type for row in await app.schedules.list()] == ["kept"]
    assert (await app.schedules.get("kept")).enabled


async def test_the_same_verbs_without_a_loop(app: Forge, database_url: str) -> None:
    def act() -> list[Any]:
        verbs = app.sync.schedules
        made = verbs.ensure("fetch_feed", "42", {"n": 1}, every="1h")
        with psycopg.connect(database_url) as conn:
            conn.execute("create table subscriptions (feed text)")
            off = verbs.sync_enabled(
                "fetch_feed", "42", "select from subscriptions where feed = $1", "42", conn=conn
            )
            on = verbs.enable("fetch_feed", "42", conn=conn)
            also = verbs.ensure("other", cron="0 3 * * *", conn=conn)
        verbs.run_now("fetch_feed", "42")
        listed = verbs.list()
        return [made, off, on, also, listed, verbs.get("fetch_feed", "42"), verbs.disable("other")]

    made, off, on, also, listed, got, last = await asyncio.to_thread(act)

    assert made.id == off.id == on.id == got.id
    assert (off.enabled, on.enabled, last.enabled) == (False, True, False)
    assert {row.id for row in listed} == {made.id, also.id}
    await asyncio.to_thread(app.sync.close)
