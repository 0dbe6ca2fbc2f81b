"""The overview and the findings over HTTP."""

import asyncio

import httpx
import pytest

from forge import Forge
from forge.http.operations import overview
from tests.http.admins import MANAGER
from tests.http.conftest import MakeToken
from tests.http.job_client import add_jobs, code


async def test_an_operator_reads_the_overview(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    add_jobs(app)
    handle = await app.dispatch("export_users", {"format": "csv"})
    await app.pause("send_mail", reason="full", actor="ann")

    answer = await http.get("/_api/overview", headers=token("staff"))

    read = answer.json()
    assert answer.status_code == 200, read
    assert read["jobs"]["pending"] == {"count": 1, "precision": "exact"}
    assert read["oldest_ready"]["job_id"] == str(handle.id)
    assert read["slots"] == {"in_use": 0, "total": 0}
    assert read["workers"] == {"alive": 0, "drained": 0, "draining": 0, "dead": 0}
    assert read["dead_letters_waiting"] == 0
    assert read["schedules_failing"] == {"count": 0, "precision": "exact"}
    assert [(pause["type"], pause["actor"]) for pause in read["pauses"]] == [("send_mail", "ann")]


async def test_an_operator_reads_the_findings(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    add_jobs(app)
    await app.dispatch("export_users", {"format": "csv"})

    items = (await http.get("/_api/findings", headers=token("viewer", "staff"))).json()["items"]

    found = next(item for item in items if item["code"] == "unserved_jobs")
    assert set(found) == {"code", "severity", "message", "action", "facts"}
    assert found["severity"] == "problem"
    assert "no live worker has that type" in found["message"]
    assert found["facts"]["job_type"] == "export_users"
    assert "ok" not in {item["severity"] for item in items}
    everything = await http.get(
        "/_api/findings", params={"include_ok": "true"}, headers=token("staff")
    )
    checks = everything.json()["items"]
    assert checks[: len(items)] == items
    assert {"migrations", "version"} <= {item["code"] for item in checks[len(items) :]}


@pytest.mark.parametrize("path", ["/_api/overview", "/_api/findings"])
async def test_a_tenant_reads_neither(http: httpx.AsyncClient, token: MakeToken, path: str) -> None:
    assert code(await http.get(path, headers=token(*MANAGER, tenant=7))) == (403, "forbidden")


@pytest.mark.parametrize("path", ["/_api/overview", "/_api/findings"])
async def test_many_pollers_cost_one_reading(
    app: Forge,
    http: httpx.AsyncClient,
    token: MakeToken,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_jobs(app)
    for name in ("OVERVIEW_AGE", "FINDINGS_AGE"):
        monkeypatch.setattr(overview, name, 3600.0)
    headers = token("staff")

    answers = await asyncio.gather(*(http.get(path, headers=headers) for _ in range(10)))
    await app.dispatch("export_users", {"format": "csv"})
    later = await http.get(path, headers=headers)

    assert len({answer.text for answer in (*answers, later)}) == 1
