"""Schedules over HTTP: who sees them, what they show, and moving them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest

from forge import Forge, ScheduleContext, ScheduleRecord
from forge.http.schedule_shapes import ScheduleDetail
from tests.faults.kit.process import until
from tests.flow.engine.conftest import Work
from tests.http.conftest import MakeToken
from tests.http.jobs import code, paths

LATER = datetime(2035, 1, 1, tzinfo=UTC)
MANAGER = ("staff", "manager")
Psql = asyncpg.Connection


@pytest.fixture(autouse=True)
def _schedules(app: Forge) -> None:
    @app.schedule("fetch_feed")
    async def fetch_feed(ctx: ScheduleContext, payload: dict) -> timedelta:
        return timedelta(hours=1)

    @app.schedule("hourly", every="1h")
    async def hourly(ctx: ScheduleContext) -> None: ...


async def test_the_shape_of_a_schedule_is_the_row_and_what_follows_from_it(
    psql: "Psql[Any]",
) -> None:
    columns = await psql.fetch(
        "select column_name from information_schema.columns where table_name = 'forge_schedules'"
    )

    fields = set(ScheduleDetail.model_fields)

    assert fields == {row["column_name"] for row in columns} | {"in_words", "next_runs"}
    assert fields == set(ScheduleRecord.__dataclass_fields__) | {"in_words", "next_runs"}


async def test_a_schedule_is_shown_with_its_rule_in_words_and_its_next_five_runs(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    made = await app.schedules.ensure(
        "report", "daily", {"n": [1]}, cron="0 3 * * *", tz="Europe/Paris", timeout="90s"
    )

    shown = (await http.get(f"/_api/schedules/{made.id}", headers=token("staff"))).json()

    assert (shown["type"], shown["key"], shown["payload"]) == ("report", "daily", {"n": [1]})
    assert (shown["cron"], shown["tz"], shown["timeout"]) == ("0 3 * * *", "Europe/Paris", "90s")
    assert shown["in_words"] == "at 03:00 every day, Europe/Paris time"
    runs = [datetime.fromisoformat(run) for run in shown["next_runs"]]
    assert runs[0] == made.next_run_at
    assert [run.hour in (1, 2) for run in runs] == [True] * 5
    assert runs == sorted(set(runs))


async def test_one_without_a_rule_of_its_own_runs_by_that_of_its_type(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    made = await app.schedules.ensure("hourly", next_run_at=LATER)
    await psql.execute("update forge_schedules set every = null")

    shown = (await http.get(f"/_api/schedules/{made.id}", headers=token("staff"))).json()

    assert (shown["every"], shown["in_words"]) == (None, "every hour")
    steps = [(datetime.fromisoformat(run) - LATER).total_seconds() for run in shown["next_runs"]]
    assert steps == [0, 3600, 7200, 10_800, 14_400]


async def test_its_last_runs_are_shown(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    made = await app.schedules.ensure("fetch_feed", "42", {})
    await work(app)

    async def shown() -> Any:
        found = await http.get(f"/_api/schedules/{made.id}", headers=token("staff"))
        return found.json() if found.json()["last_run_at"] else None

    (run,) = (await until(shown, 20, "the schedule has run"))["recent_runs"]
    assert (run["outcome"], run["lease"], run["error"]) == ("completed", 1, None)


async def test_pages_follow_each_other_the_newest_first(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    made = [str((await app.schedules.ensure("fetch_feed", f"{n}")).id) for n in range(7)]

    seen, cursor, pages = [], None, 0
    while cursor or not pages:
        asked = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await http.get("/_api/schedules", params=asked, headers=token("staff"))).json()
        seen += [schedule["id"] for schedule in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1

    assert seen == sorted(made, reverse=True)  # ids begin with the time they were made
    assert pages == 3


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["a", "b", "c"]),
        ({"type": "fetch_feed"}, ["a", "b"]),
        ({"type": "nobody"}, []),
        ({"enabled": "false"}, ["b"]),
        ({"enabled": "true"}, ["a", "c"]),
        ({"enabled": "true", "type": "hourly"}, ["c"]),
    ],
)
async def test_schedules_are_found_by_what_they_are(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, asked: dict[str, str], found: list[str]
) -> None:
    await app.schedules.ensure("fetch_feed", "a")
    await app.schedules.ensure("fetch_feed", "b")
    await app.schedules.ensure("hourly", "c")
    await app.schedules.disable("fetch_feed", "b")

    page = (await http.get("/_api/schedules", params=asked, headers=token("staff"))).json()

    assert sorted(schedule["key"] for schedule in page["items"]) == found


async def test_what_cannot_be_asked_for_is_refused_with_its_path(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    staff = token("staff")

    assert paths(await http.get("/_api/schedules?cursor=x", headers=staff)) == ["query.cursor"]
    assert paths(await http.get("/_api/schedules?limit=0", headers=staff)) == ["query.limit"]
    assert paths(await http.get("/_api/schedules/x", headers=staff)) == ["path.schedule_id"]


async def test_a_tenant_sees_its_own_schedules_and_an_operator_all(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    for tenant in (7, 8, None):
        await app.schedules.ensure("fetch_feed", f"of {tenant}", tenant_id=tenant)

    async def seen(tenant: int | None) -> set[str]:
        page = await http.get("/_api/schedules", headers=token("staff", tenant=tenant))
        return {schedule["key"] for schedule in page.json()["items"]}

    assert await seen(7) == {"of 7"}
    assert await seen(9) == set()
    assert await seen(None) == {"of 7", "of 8", "of None"}


@pytest.mark.parametrize("move", ["", "/enable", "/disable", "/run"])
async def test_another_tenants_schedule_is_not_there_and_stays(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]", move: str
) -> None:
    others = await app.schedules.ensure("fetch_feed", "1", tenant_id=8, next_run_at=LATER)
    nobodys = await app.schedules.ensure("fetch_feed", "1", next_run_at=LATER)
    method = "POST" if move else "GET"

    for id in (others.id, nobodys.id, uuid4()):
        headers = token(*MANAGER, tenant=7)
        answer = await http.request(method, f"/_api/schedules/{id}{move}", headers=headers)
        assert code(answer) == (404, "not_found")

    assert await app.schedules.get("fetch_feed", "1", tenant_id=8) == others
    assert await app.schedules.get("fetch_feed", "1") == nobodys
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


@pytest.mark.parametrize(
    ("method", "route", "allowed"),
    [
        ("GET", "", [("staff",), MANAGER]),
        ("GET", "/{id}", [("staff",), MANAGER]),
        ("POST", "/{id}/enable", [MANAGER]),
        ("POST", "/{id}/disable", [MANAGER]),
        ("POST", "/{id}/run", [MANAGER]),
    ],
)
async def test_only_who_may_gets_through(
    app: Forge, http: httpx.AsyncClient, token: MakeToken,
    method: str, route: str, allowed: list[tuple[str, ...]],
) -> None:  # fmt: skip
    made = await app.schedules.ensure("fetch_feed", next_run_at=LATER)
    path = "/_api/schedules" + route.format(id=made.id)

    for roles in ((), ("user",), ("manager",), ("user", "manager"), ("staff",), MANAGER):
        answer = await http.request(method, path, headers=token(*roles))
        if roles in allowed:
            assert answer.is_success
        else:
            assert code(answer) == (403, "forbidden")
    assert code(await http.request(method, path)) == (401, "unauthenticated")


async def test_disabling_and_enabling_keep_its_time_and_are_written_down_once(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    made = await app.schedules.ensure("fetch_feed", "1", tenant_id=7, next_run_at=LATER)
    manager = token(*MANAGER, tenant=7, name="max")

    async def moved(move: str, **body: Any) -> Any:
        path = f"/_api/schedules/{made.id}/{move}"
        answer = await http.post(path, headers=manager, json=body or None)
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        assert datetime.fromisoformat(shown["next_run_at"]) == LATER
        return shown["enabled"], shown["next_runs"]

    assert await moved("disable", reason="too many") == (False, [])
    assert await moved("disable") == (False, [])
    assert await moved("enable") == (True, ["2035-01-01T00:00:00Z"])
    assert await moved("enable") == (True, ["2035-01-01T00:00:00Z"])

    rows = await psql.fetch("select * from forge_audit_events order by id")
    assert [(row["event"], row["notes"]) for row in rows] == [
        ("schedule_disabled", "too many"),
        ("schedule_enabled", None),
    ]
    assert {(row["actor"], row["tenant_id"], row["schedule_id"]) for row in rows} == {
        ("max", 7, made.id)
    }


async def test_one_that_was_enabled_past_its_time_runs_at_once(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    made = await app.schedules.ensure("fetch_feed", "1", {}, next_run_at=past)
    await app.schedules.disable("fetch_feed", "1")
    await work(app)

    await http.post(f"/_api/schedules/{made.id}/enable", headers=token(*MANAGER))

    async def has_run() -> bool:
        return (await app.schedules.get("fetch_feed", "1")).last_run_at is not None

    await until(has_run, 20, "the schedule has run")


async def test_one_that_is_asked_to_runs_at_once_and_that_is_written_down(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, psql: "Psql[Any]"
) -> None:
    made = await app.schedules.ensure("fetch_feed", "1", {}, next_run_at=LATER)
    await work(app)

    answer = await http.post(f"/_api/schedules/{made.id}/run", headers=token(*MANAGER))

    async def has_run() -> bool:
        return (await app.schedules.get("fetch_feed", "1")).last_run_at is not None

    assert answer.status_code == 202
    assert datetime.fromisoformat(answer.json()["next_run_at"]) < LATER
    await until(has_run, 20, "the schedule has run")
    row = await psql.fetchrow("select event, actor, schedule_id from forge_audit_events")
    assert tuple(row) == ("schedule_run_requested", "ann", made.id)


async def test_one_that_is_disabled_is_not_run(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    made = await app.schedules.ensure("fetch_feed", "1", next_run_at=LATER)
    disabled = await app.schedules.disable("fetch_feed", "1")

    answer = await http.post(f"/_api/schedules/{made.id}/run", headers=token(*MANAGER))

    assert code(answer) == (409, "conflict")
    assert await app.schedules.get("fetch_feed", "1") == disabled
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


async def test_what_writes_the_audit_fails_together_with_the_move(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    made = await app.schedules.ensure("fetch_feed", "1", next_run_at=LATER)
    await psql.execute("revoke insert on forge_audit_events from forge_api")

    answer = await http.post(f"/_api/schedules/{made.id}/disable", headers=token(*MANAGER))

    assert code(answer) == (500, "internal")
    assert await app.schedules.get("fetch_feed", "1") == made


RULE = {"every", "cron", "tz", "missed", "jitter", "priority", "worker_capability", "timeout"}
# What schedules/ensure, schedules/enable and schedules/run_now write, and nothing else.
MADE = RULE | {"id", "type", "key", "tenant_id", "payload", "next_run_at", "tick_at"}
MOVED = RULE | {"payload", "enabled", "next_run_at", "tick_at", "updated_at"}


async def test_the_api_may_make_and_move_schedules_and_nothing_else(
    api_url: str, psql: "Psql[Any]"
) -> None:
    rows = await psql.fetch(
        "select column_name, privilege_type from information_schema.column_privileges"
        " where grantee = 'forge_api' and table_name = 'forge_schedules'"
    )

    granted = {(row["column_name"], row["privilege_type"]) for row in rows}
    assert {name for name, right in granted if right == "UPDATE"} == MOVED
    assert {name for name, right in granted if right == "INSERT"} == MADE
    assert {right for _, right in granted} == {"SELECT", "INSERT", "UPDATE"}


async def test_who_serves_subscriptions_sees_to_their_schedules(app: Forge, api_url: str) -> None:
    async with Forge(database_url=api_url) as api:
        made = await api.schedules.ensure("fetch_feed", "1", {"feed": 1}, every="1h")
        rests = await api.schedules.sync_enabled("fetch_feed", "1", "select where false")
        wakes = await api.schedules.ensure("fetch_feed", "1", {"feed": 1}, every="1h")

    assert [made.enabled, rests.enabled, wakes.enabled] == [True, False, True]
    assert (await app.schedules.get("fetch_feed", "1")).id == made.id


@pytest.mark.parametrize(
    "statement",
    [
        "update forge_schedules set lease = 0",
        "update forge_schedules set running_since = null",
        "update forge_schedules set type = 'mine'",
        "update forge_schedules set tenant_id = 7",
        "insert into forge_schedules (type, lease) values ('mine', 7)",
        "delete from forge_schedules",
    ],
)
async def test_the_database_holds_the_api_to_that(app: Forge, api_url: str, statement: str) -> None:
    await app.schedules.ensure("fetch_feed", "1")
    conn = await asyncpg.connect(api_url)

    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.execute(statement)
    finally:
        await conn.close()
