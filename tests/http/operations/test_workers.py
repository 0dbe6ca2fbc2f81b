"""Workers and job types over HTTP."""

from typing import Any
from uuid import uuid4

import httpx

from forge import Forge
from forge.core.lifecycle import Status
from forge.operations.workers import SHOWN_IN_LIST
from forge.store.connection.database import Database
from tests.apps import MakeApp, Work
from tests.http.admins import MANAGER, events
from tests.http.conftest import MakeServerApp, MakeToken
from tests.http.job_client import add_jobs, code
from tests.store.placing import Psql, placed, registered


async def test_a_worker_is_shown_with_what_it_serves(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    add_jobs(app)
    await work(app)

    (worker,) = (await http.get("/_api/workers", headers=token("staff"))).json()["items"]

    assert set(worker["job_types"]) >= {"export_users", "charge", "send_mail"}
    assert (worker["is_alive"], worker["draining"], worker["max_concurrent"]) == (True, False, 10)
    assert worker["silent_for"] < 30


async def test_workers_require_staff(http: httpx.AsyncClient, token: MakeToken) -> None:
    assert code(await http.get("/_api/workers", headers=token("user"))) == (403, "forbidden")


async def test_a_worker_that_is_silent_for_too_long_is_not_alive(
    http: httpx.AsyncClient, token: MakeToken, database: Database, psql: "Psql[Any]"
) -> None:
    await registered(database)
    await psql.execute("update forge_workers set last_heartbeat = now() - interval '1 day'")

    (worker,) = (await http.get("/_api/workers", headers=token("staff"))).json()["items"]

    assert worker["is_alive"] is False


async def test_job_types_are_shown_with_their_defaults_and_schemas(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    add_jobs(app)

    answer = await http.get("/_api/job_types", headers=token("user"))

    charge, export, mail = answer.json()["items"]
    assert [charge["name"], export["name"], mail["name"]] == [
        "charge",
        "export_users",
        "send_mail",
    ]
    assert (charge["idempotent"], export["idempotent"]) == ("input.payment_id", None)
    assert export["description"] == "Export the users of a tenant.\n\nAs one file."
    assert charge["description"] is None
    assert export["input_schema"]["required"] == ["format"]
    assert export["output_schema"]["required"] == ["file", "extension"]
    assert (mail["priority"], mail["queue"], mail["max_attempts"]) == (75, "mail", 7)
    assert (mail["timeout"], mail["input_schema"]) == ("1h", None)


async def test_types_of_other_apps_are_listed(
    app: Forge,
    http: httpx.AsyncClient,
    token: MakeToken,
    make_app: MakeApp,
    make_server_app: MakeServerApp,
    work: Work,
) -> None:
    add_jobs(app)
    await work(app)
    transport = httpx.ASGITransport(make_server_app(make_app()))
    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as elsewhere:
        there = await elsewhere.get("/_api/job_types", headers=token("user"))

    here = await http.get("/_api/job_types", headers=token("user"))

    assert there.json() == here.json()


async def test_a_worker_is_drained_and_resumed_with_one_audit_event_each(
    http: httpx.AsyncClient, token: MakeToken, database: Database, psql: "Psql[Any]"
) -> None:
    worker = (await registered(database)).id
    root, where = token(*MANAGER, name="root"), f"/_api/workers/{worker}"

    drained = await http.post(f"{where}/drain", json={"reason": "a new kernel"}, headers=root)
    again = await http.post(f"{where}/drain", headers=root)
    seen = (await http.get(where, headers=token("staff", tenant=7))).json()
    resumed = await http.post(f"{where}/resume", headers=root)

    assert (drained.status_code, drained.json()["state"]) == (200, "drained")
    assert drained.json()["drained_by"] == "root"
    assert again.json()["drain_reason"] == "a new kernel"
    assert (seen["state"], seen["drained_by"], seen["drain_reason"]) == ("drained", None, None)
    assert (resumed.json()["state"], resumed.json()["drained_at"]) == ("alive", None)
    assert await events(psql) == [
        ("worker_drained", "root", "a new kernel", None),
        ("worker_resumed", "root", None, None),
    ]
    unknown = f"/_api/workers/{uuid4()}"
    assert code(await http.post(f"{unknown}/drain", headers=root)) == (404, "not_found")
    assert code(await http.get(unknown, headers=root)) == (404, "not_found")


async def test_what_a_worker_runs_is_shown_to_its_tenant_and_bounded(
    http: httpx.AsyncClient, token: MakeToken, database: Database, psql: "Psql[Any]"
) -> None:
    worker = (await registered(database)).id
    for n in range(SHOWN_IN_LIST + 2):
        await placed(psql, Status.RUNNING, worker=worker, tenant_id=7 if n < 2 else 8)
    await psql.execute(
        "insert into forge_schedules (type, running_since, worker_id) "
        "values ('fetch', now() - interval '1 hour', $1)",
        worker,
    )

    async def current(*path: Any, tenant: int | None = None) -> Any:
        where = "/".join(["/_api/workers", *map(str, path)])
        shown = (await http.get(where, headers=token("staff", tenant=tenant))).json()
        return (shown if path else shown["items"][0])["current"]

    listed, alone = await current(), await current(worker)
    assert (len(listed), len(alone)) == (SHOWN_IN_LIST, SHOWN_IN_LIST + 3)
    assert [(held["kind"], held["type"]) for held in alone[:2]] == [
        ("run", "fetch"),
        ("job", "work"),
    ]
    assert [held["since"] for held in alone] == sorted(held["since"] for held in alone)
    assert [held["tenant_id"] for held in await current(worker, tenant=7)] == [7, 7]
    assert await current(tenant=9) == []
