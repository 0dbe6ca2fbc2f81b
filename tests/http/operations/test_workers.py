"""Workers and job types over HTTP."""

from typing import Any

import httpx

from forge import Forge
from forge.store.connection.database import Database
from tests.apps import MakeApp, Work
from tests.http.conftest import MakeServerApp, MakeToken
from tests.http.job_client import add_jobs, code
from tests.store.placing import Psql, registered


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
