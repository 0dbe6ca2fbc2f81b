"""Pauses over HTTP: added, listed and removed by operators, with one audit event each."""

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from forge import Forge
from tests.apps import Work
from tests.http.admins import MANAGER
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, code
from tests.store.placing import Psql


async def test_a_pause_is_added_listed_and_removed(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, psql: "Psql[Any]"
) -> None:
    add_jobs(app)
    root, body = token(*MANAGER, name="root"), {"type": "export_users", "for": "2h"}

    answer = await http.post("/_api/pauses", json=body | {"reason": "full"}, headers=root)

    added = answer.json()
    assert answer.status_code == 201, added
    assert set(added) == {
        *("pause_id", "type", "queue", "until", "reason", "actor", "created_at", "warning")
    }
    assert (added["type"], added["queue"], added["actor"]) == ("export_users", None, "root")
    lasts = datetime.fromisoformat(added["until"]) - datetime.fromisoformat(added["created_at"])
    assert lasts == timedelta(hours=2)
    assert "export_users' is registered" in added.pop("warning")
    listed = (await http.get("/_api/pauses", headers=token("staff"))).json()
    assert listed == {"items": [added]}

    handle = await app.dispatch("export_users", {"format": "csv"})
    await work(app)
    where = f"/_api/pauses/{added['pause_id']}"
    removed = await http.request("DELETE", where, json={"reason": "repaired"}, headers=root)

    assert (removed.status_code, removed.content) == (204, b"")
    await handle.result(20)
    assert code(await http.delete(where, headers=root)) == (404, "not_found")
    assert (await http.get("/_api/pauses", headers=root)).json() == {"items": []}
    events = await psql.fetch(
        "select event, actor, notes, tenant_id, detail->>'type' as type from forge_audit_events"
    )
    assert sorted(map(tuple, events)) == [
        ("pause_added", "root", "full", None, "export_users"),
        ("pause_removed", "root", "repaired", None, "export_users"),
    ]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"reason": "all"}, "$"),
        ({"type": "mail"}, "$.reason"),
        ({"type": "forge.cancel", "reason": "no"}, "$"),
        ({"type": "mail", "reason": "x", "for": "soon"}, "$.for"),
        ({"type": "mail", "reason": "x", "for": "1h", "until": "2135-01-01T00:00:00Z"}, "$"),
        ({"type": "mail", "reason": "x", "until": "2020-01-01T00:00:00Z"}, "$"),
        ({"type": "mail", "reason": "x", "untill": "2135-01-01T00:00:00Z"}, "$.untill"),
    ],
)
async def test_an_invalid_pause_is_refused_with_the_path_of_the_fault(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]", body: Any, path: str
) -> None:
    answer = await http.post("/_api/pauses", json=body, headers=token(*MANAGER))

    assert answer.status_code == 422
    assert [fault["path"] for fault in answer.json()["errors"]] == [path]
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


async def test_tenants_neither_see_nor_change_pauses(
    http: httpx.AsyncClient, token: MakeToken, app: Forge
) -> None:
    pause = await app.pause("mail", reason="tenant 8 floods the provider")
    tenant = token(*MANAGER, tenant=7)

    refused = [
        await http.get("/_api/pauses", headers=tenant),
        await http.post("/_api/pauses", json={"type": "x", "reason": "x"}, headers=tenant),
        await http.delete(f"/_api/pauses/{pause.pause_id}", headers=tenant),
    ]

    assert {code(answer) for answer in refused} == {(403, "forbidden")}
    assert all("operator" in answer.json()["detail"] for answer in refused)
    assert await app.pauses() == [pause]
