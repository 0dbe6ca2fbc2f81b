"""Schedules over HTTP: listing and showing."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from forge import Forge, ScheduleRecord
from forge.http.schedules.shapes import ScheduleDetail
from tests.apps import Work
from tests.faults.kit.process import until
from tests.http.admins import MANAGER
from tests.http.conftest import MakeToken
from tests.http.job_client import code, paths
from tests.http.schedules.conftest import LATER
from tests.store.placing import Psql


async def test_the_shape_of_a_schedule_is_the_row_and_what_follows_from_it(
    psql: "Psql[Any]",
) -> None:
    columns = await psql.fetch(
        "select column_name from information_schema.columns where table_name = 'forge_schedules'"
    )

    fields = set(ScheduleDetail.model_fields)

    added = {"in_words", "next_runs", "undecodable"}
    assert fields == {row["column_name"] for row in columns} | added
    assert fields == set(ScheduleRecord.__dataclass_fields__) | added


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


async def test_schedule_without_a_rule_uses_that_of_its_type(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    made = await app.schedules.ensure("hourly", next_run_at=LATER)
    await psql.execute("update forge_schedules set every = null")

    shown = (await http.get(f"/_api/schedules/{made.id}", headers=token("staff"))).json()

    assert (shown["every"], shown["in_words"]) == (None, "every hour")
    steps = [(datetime.fromisoformat(run) - LATER).total_seconds() for run in shown["next_runs"]]
    assert steps == [0, 3600, 7200, 10_800, 14_400]


async def test_recent_runs_are_shown(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    made = await app.schedules.ensure("fetch_feed", "42", {})
    await work(app)

    async def shown() -> Any:
        found = await http.get(f"/_api/schedules/{made.id}", headers=token("staff"))
        return found.json() if found.json()["last_run_at"] else None

    (run,) = (await until(shown, 20, "the schedule has run"))["recent_runs"]
    assert (run["outcome"], run["lease"], run["error"]) == ("completed", 1, None)


async def test_pages_are_newest_first(
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
async def test_filters(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, asked: dict[str, str], found: list[str]
) -> None:
    await app.schedules.ensure("fetch_feed", "a")
    await app.schedules.ensure("fetch_feed", "b")
    await app.schedules.ensure("hourly", "c")
    await app.schedules.disable("fetch_feed", "b")

    page = (await http.get("/_api/schedules", params=asked, headers=token("staff"))).json()

    assert sorted(schedule["key"] for schedule in page["items"]) == found


async def test_invalid_parameters_are_refused_with_their_path(
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
async def test_schedule_of_another_tenant_is_not_found(
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
async def test_required_roles(
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


async def test_schedules_are_filtered_by_key_and_tenant(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    for key, tenant in (("1", None), ("2", None), ("", None), ("1", 7)):
        await app.schedules.ensure("hourly", key, next_run_at=LATER, tenant_id=tenant)

    async def found(tenant: int | None = None, **asked: Any) -> list[tuple[str, int | None]]:
        headers = token("staff", tenant=tenant)
        answer = await http.get("/_api/schedules", params=asked, headers=headers)
        return [(item["key"], item["tenant_id"]) for item in answer.json()["items"]]

    assert await found(key="1") == [("1", 7), ("1", None)]
    assert await found(key="") == [("", None)]
    assert await found(tenant_id=7) == [("1", 7)]
    assert await found(tenant=7, key="2") == []
    refused = await http.get("/_api/schedules?tenant_id=8", headers=token("staff", tenant=7))
    assert code(refused) == (403, "forbidden")
