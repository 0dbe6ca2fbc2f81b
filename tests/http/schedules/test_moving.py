"""Schedules over HTTP: enable, disable, run, and the audit."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx

from forge import Forge
from tests.apps import Work
from tests.faults.kit.process import until
from tests.http.admins import MANAGER
from tests.http.conftest import MakeToken
from tests.http.job_client import code
from tests.http.schedules.conftest import LATER
from tests.store.placing import Psql


async def test_disable_and_enable_keep_the_next_run_and_are_audited_once(
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
    assert await moved("enable") == (True, ["2135-01-01T00:00:00Z"])
    assert await moved("enable") == (True, ["2135-01-01T00:00:00Z"])

    # Two people at once: one of them disables it.
    async with psql.transaction():
        await psql.execute("select from forge_schedules for update")
        both = [asyncio.create_task(moved("disable", reason="again")) for _ in range(2)]
        # Not pg_stat_activity, which shows a transaction the sessions that it saw at first.
        waits = "select count(*) = 2 from pg_locks where not granted"
        await until(lambda: psql.fetchval(waits), 30, "both wait for the row")
    assert await asyncio.gather(*both) == [(False, [])] * 2

    rows = await psql.fetch("select * from forge_audit_events order by id")
    assert [(row["event"], row["notes"]) for row in rows] == [
        ("schedule_disabled", "too many"),
        ("schedule_enabled", None),
        ("schedule_disabled", "again"),
    ]
    assert {(row["actor"], row["tenant_id"], row["schedule_id"]) for row in rows} == {
        ("max", 7, made.id)
    }


async def test_overdue_schedule_runs_when_enabled(
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


async def test_run_makes_a_schedule_due_and_is_audited(
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


async def test_disabled_schedule_cannot_run(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    made = await app.schedules.ensure("fetch_feed", "1", next_run_at=LATER)
    disabled = await app.schedules.disable("fetch_feed", "1")

    answer = await http.post(f"/_api/schedules/{made.id}/run", headers=token(*MANAGER))

    assert code(answer) == (409, "conflict")
    assert await app.schedules.get("fetch_feed", "1") == disabled
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


async def test_change_and_audit_share_a_transaction(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    made = await app.schedules.ensure("fetch_feed", "1", next_run_at=LATER)
    await psql.execute("revoke insert on forge_audit_events from forge_api")

    answer = await http.post(f"/_api/schedules/{made.id}/disable", headers=token(*MANAGER))

    assert code(answer) == (500, "internal")
    assert await app.schedules.get("fetch_feed", "1") == made
