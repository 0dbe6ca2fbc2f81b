"""Schedules over HTTP: edits, previews, and their audit."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from forge import Forge, ScheduleContext
from tests.apps import Work
from tests.faults.kit.process import until
from tests.http.admins import MANAGER
from tests.http.conftest import MakeToken
from tests.http.job_client import code, paths
from tests.http.schedules.conftest import LATER
from tests.store.placing import Psql


class Mail(BaseModel):
    """Payload of a schedule."""

    to: str
    password: str = ""


@pytest.fixture(autouse=True)
def mail(app: Forge) -> None:
    @app.schedule("mail")
    async def mail(ctx: ScheduleContext, payload: Mail) -> None: ...

    @app.cron("0 3 * * *", jitter="1m")
    async def nightly(ctx: ScheduleContext) -> None: ...


async def test_an_edit_changes_what_was_sent_with_one_audit_event(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    payload = {"to": "ann", "password": "hunter2"}
    made = await app.schedules.ensure("mail", "1", payload, every="1h", jitter="1m", tenant_id=7)
    manager = token(*MANAGER, tenant=7, name="max")
    path = f"/_api/schedules/{made.id}"
    change = {"cron": "0 5 * * *", "tz": "Europe/Paris", "jitter": None, "patch": {"to": "bob"}}

    shown = await http.post(f"{path}/preview?count=2", headers=manager, json=change)
    unchanged = await app.schedules.get("mail", "1", tenant_id=7)
    body = change | {"reason": "too early"}
    answer = await http.patch(path, headers=manager, json=body)
    again = await http.patch(path, headers=manager, json={"cron": "0 5 * * *"})

    assert unchanged == made
    assert (shown.status_code, answer.status_code, again.status_code) == (200, 200, 200)
    preview, detail = shown.json(), answer.json()
    assert preview["in_words"] == "at 05:00 every day, Europe/Paris time" == detail["in_words"]
    assert preview["next_runs"] == detail["next_runs"][:2]
    assert preview["changed"] == ["every", "cron", "tz", "jitter", "next_run_at", "payload"]
    assert detail["payload"] == {"to": "bob", "password": "[redacted]"}
    row = await app.schedules.get("mail", "1", tenant_id=7)
    assert row.payload == payload | {"to": "bob"}
    assert (row.every, row.jitter, row.next_run_at) == (
        None,
        None,
        datetime.fromisoformat(detail["next_run_at"]),
    )
    (event,) = await psql.fetch("select * from forge_audit_events")
    assert (event["event"], event["actor"], event["notes"]) == (
        "schedule_edited",
        "max",
        "too early",
    )
    assert (event["tenant_id"], event["schedule_id"]) == (7, made.id)
    detail = json.loads(event["detail"])
    assert detail["changed"] == preview["changed"]
    assert (detail["before"]["every"], detail["after"]["cron"]) == ("1h", "0 5 * * *")
    assert "hunter2" not in event["detail"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"patch": {"to": None}}, "$.patch.to"),
        ({"payload": {"to": 7}}, "$.payload.to"),
        ({"patch": {"password": "[redacted]"}}, "$.patch.password"),
        ({"cron": "at three"}, None),
        ({"cron": "0 3 * * *", "every": "1h"}, None),
        ({"every": "0s"}, None),
        ({"evry": "1h"}, "$.evry"),
        ({"priority": 60}, "$.priority"),
        ({"reset": True}, None),
        ({"tz": None}, "$.tz"),
        ({"missed": None}, "$.missed"),
        ({"priority": None}, "$.priority"),
        ({"next_run_at": None}, "$.next_run_at"),
        ({"payload": None}, "$.payload"),
        ({"patch": None}, "$.patch"),
    ],
)
async def test_an_invalid_edit_is_refused_by_edit_and_preview(
    app: Forge,
    http: httpx.AsyncClient,
    token: MakeToken,
    psql: "Psql[Any]",
    body: dict[str, Any],
    path: str | None,
) -> None:
    made = await app.schedules.ensure("mail", "1", {"to": "ann"}, every="1h", next_run_at=LATER)
    address, manager = f"/_api/schedules/{made.id}", token(*MANAGER)

    edit = await http.patch(address, headers=manager, json=body)
    preview = await http.post(f"{address}/preview", headers=manager, json=body)

    for answer in (edit, preview):
        assert code(answer) == (422, "invalid")
        if path is not None:
            assert paths(answer) == [path]
    assert await app.schedules.get("mail", "1") == made
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0


async def test_edits_of_another_tenants_schedule_are_not_found(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    made = await app.schedules.ensure("mail", "1", {"to": "ann"}, every="1h", tenant_id=8)
    address, manager = f"/_api/schedules/{made.id}", token(*MANAGER, tenant=7)

    edit = await http.patch(address, headers=manager, json={"every": "2h"})
    preview = await http.post(f"{address}/preview", headers=manager, json={"every": "2h"})

    assert [code(edit), code(preview)] == [(404, "not_found")] * 2
    assert await app.schedules.get("mail", "1", tenant_id=8) == made


async def test_a_cron_definition_leaves_what_was_edited_until_it_is_reset(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    run = (await (await app.session()).database()).run
    await app.schedules.plant(run)
    made = await app.schedules.get("nightly")

    await http.patch(
        f"/_api/schedules/{made.id}", headers=token(*MANAGER), json={"cron": "0 5 * * *"}
    )
    await app.schedules.plant(run)
    edited = await app.schedules.get("nightly")
    reset = await app.schedules.edit("nightly", reset=True, reason="as in the code", actor="ann")

    assert (edited.cron, edited.edited) == ("0 5 * * *", ["rule"])
    assert (edited.jitter, edited.priority) == (timedelta(minutes=1), 50)
    assert (reset.cron, reset.edited) == ("0 3 * * *", [])
    # A call of ensure in code decides again.
    await app.schedules.edit("nightly", jitter=None, cron="0 6 * * *")
    ensured = await app.schedules.ensure("nightly", cron="0 4 * * *")
    assert (ensured.cron, ensured.jitter, ensured.edited) == ("0 4 * * *", None, ["jitter"])


async def test_a_worker_runs_an_edited_schedule_with_its_new_payload(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    sent = []

    @app.schedule("deliver")
    async def deliver(ctx: ScheduleContext, payload: Mail) -> None:
        sent.append(payload.to)

    made = await app.schedules.ensure("deliver", "", {"to": "ann"}, next_run_at=LATER)
    await work(app)
    soon = datetime.now(UTC).isoformat()

    await http.patch(
        f"/_api/schedules/{made.id}",
        headers=token(*MANAGER),
        json={"payload": {"to": "bob"}, "next_run_at": soon},
    )

    await until(lambda: _is(sent, ["bob"]), 20, "the edited schedule has run")


async def _is(found: list[str], wanted: list[str]) -> bool:
    return found == wanted
