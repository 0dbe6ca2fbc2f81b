"""Grants of the server's role on schedules."""

from typing import Any

import asyncpg
import pytest

from forge import Config, Forge
from tests.http.conftest import AUTH
from tests.store.placing import Psql

RULE = {"every", "cron", "tz", "missed", "jitter", "priority", "worker_capability", "timeout"}
# What schedules/ensure, edit, enable and run_now write, and nothing else.
MADE = RULE | {"id", "type", "key", "tenant_id", "payload", "next_run_at", "tick_at"}
MOVED = RULE | {"payload", "edited", "enabled", "next_run_at", "tick_at", "updated_at"}


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


async def test_server_can_manage_schedules_of_subscriptions(app: Forge, api_url: str) -> None:
    async with Forge(Config(auth=AUTH), database_url=api_url) as api:
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
async def test_database_enforces_the_apis_grants(app: Forge, api_url: str, statement: str) -> None:
    await app.schedules.ensure("fetch_feed", "1")
    conn = await asyncpg.connect(api_url)

    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.execute(statement)
    finally:
        await conn.close()
