"""Dispatch over HTTP: options, tenants and responses."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from forge import Forge, JobContext
from forge.store.connection.database import Database
from forge.store.statement import name_of
from tests.apps import Work
from tests.http.conftest import MakeServerApp, MakeToken
from tests.http.job_client import add_jobs, code, dispatched, paths
from tests.store.placing import Psql


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b'{"args": null}', b'{"args": {}}'])
async def test_a_job_without_arguments_is_given_an_empty_object(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, body: bytes
) -> None:
    headers = token("user") | ({"Content-Type": "application/json"} if body else {})

    answer = await http.post("/_api/jobs/send_mail/dispatch", content=body, headers=headers)

    assert answer.status_code == 202
    assert (await app.get(UUID(answer.json()["job_id"]))).input == {}


async def test_options_are_stored(app: Forge, http: httpx.AsyncClient, token: MakeToken) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    correlation = uuid4()

    job_id = await dispatched(
        http,
        token("staff"),
        args={"to": "ann"},
        priority="critical",
        scheduled_at=tomorrow.isoformat(),
        tenant_id=4,
        correlation_id=str(correlation),
        payload_version="2.0",
        queue="slow",
        tags=["a", "b"],
        expires_at=(tomorrow + timedelta(days=1)).isoformat(),
        idempotency_key="k",
    )

    job = await app.get(job_id)
    assert (job.priority, job.queue, job.max_attempts) == (100, "slow", 7)
    assert (job.scheduled_at, job.expires_at) == (tomorrow, tomorrow + timedelta(days=1))
    assert (job.tenant_id, job.correlation_id, job.tags) == (4, correlation, ["a", "b"])
    assert job.payload_version == "2.0"
    assert job.idempotency_key == "k"


async def test_a_version_inside_the_input_is_that_of_the_job(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    inside = {"to": "ann", "payload_version": "2.0"}
    job = await app.get(await dispatched(http, token("user"), args=inside))
    differing = await http.post(
        "/_api/jobs/send_mail/dispatch",
        json={"args": inside, "payload_version": "1.0"},
        headers=token("user"),
    )

    assert job.payload_version == "2.0"
    assert paths(differing) == ["$.args.payload_version"]


async def test_many_share_a_version_or_have_their_own(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]"
) -> None:
    for body in (
        {"inputs": [{"to": "ann"}], "payload_version": "2.0"},
        {"inputs": [{"to": "bob", "payload_version": "3.0"}, {"to": "cat"}]},
    ):
        answer = await http.post(
            "/_api/jobs/send_mail/dispatch_many", json=body, headers=token("user")
        )
        assert answer.status_code == 202

    found = await psql.fetch("select input ->> 'to' as name, payload_version from forge_jobs")
    assert dict(map(tuple, found)) == {"ann": "2.0", "bob": "3.0", "cat": "1.0"}


async def test_dispatches_that_arrive_together_share_an_insert(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    seen: list[str] = []
    headers = token("user")
    await dispatched(http, headers)
    app.observers.append(lambda statement, seconds, error: seen.append(name_of(statement)))

    ids = await asyncio.gather(*(dispatched(http, headers, args={"n": n}) for n in range(20)))

    assert 1 <= len([name for name in seen if name.startswith("jobs/dispatch")]) < 20
    assert [(await app.get(id)).input for id in ids] == [{"n": n} for n in range(20)]


async def test_type_defaults_apply(app: Forge, http: httpx.AsyncClient, token: MakeToken) -> None:
    job = await app.get(await dispatched(http, token("user")))

    assert (job.priority, job.queue, job.max_attempts) == (75, "mail", 7)


async def test_a_delay_counts_from_the_databases_now(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    job = await app.get(await dispatched(http, token("user"), delay="2h"))

    assert job.scheduled_at - job.created_at == timedelta(hours=2)


async def test_job_has_the_tokens_tenant(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    job_id = await dispatched(http, token("user", tenant=7))
    named = await dispatched(http, token("user", tenant=7), tenant_id=7)

    assert {(await app.get(each)).tenant_id for each in (job_id, named)} == {7}


@pytest.mark.parametrize("verb", ["dispatch", "dispatch_many"])
async def test_dispatch_for_another_tenant_is_forbidden(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]", verb: str
) -> None:
    body = {"tenant_id": 8} | ({"inputs": [{}]} if verb == "dispatch_many" else {})

    answer = await http.post(
        f"/_api/jobs/send_mail/{verb}", json=body, headers=token("user", tenant=7)
    )

    assert code(answer) == (403, "forbidden")
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_handler_receives_the_callers_auth(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    @app.job
    async def who(ctx: JobContext) -> Any:
        return ctx.auth

    await work(app)

    job_id = await dispatched(http, token("user", "staff", tenant=7, name="ada"), "who")

    auth = await app.handle(job_id).result(timeout=20)
    assert auth == {"name": "ada", "roles": ["staff", "user"], "tenant_id": 7}


async def test_unknown_type_is_not_found(http: httpx.AsyncClient, token: MakeToken) -> None:
    answer = await http.post("/_api/jobs/nobody/dispatch", json={}, headers=token("user"))

    assert code(answer) == (404, "unknown_job_type")
    assert answer.json()["detail"] == "unknown job type 'nobody'"


@pytest.mark.parametrize("verb", ["dispatch", "dispatch_many"])
async def test_misspelt_type_gets_a_suggestion(
    http: httpx.AsyncClient, token: MakeToken, verb: str
) -> None:
    body = {"inputs": [{}]} if verb == "dispatch_many" else {}

    answer = await http.post(f"/_api/jobs/send_mial/{verb}", json=body, headers=token("user"))

    assert code(answer) == (404, "unknown_job_type")
    assert answer.json()["detail"] == "unknown job type 'send_mial': did you mean 'send_mail'?"


@pytest.mark.parametrize("name", ["forge.cancel", "forge.delete", "forge.anything"])
@pytest.mark.parametrize("verb", ["dispatch", "dispatch_many"])
async def test_forges_own_types_are_refused(
    http: httpx.AsyncClient, token: MakeToken, name: str, verb: str
) -> None:
    body = {"inputs": [{"job_id": str(uuid4())}]} if verb == "dispatch_many" else {}

    answer = await http.post(
        f"/_api/jobs/{name}/{verb}", json=body, headers=token("user", "staff", "manager")
    )

    assert code(answer) == (403, "forbidden")


async def test_a_type_known_by_name_alone_is_dispatched_by_the_same_rules(
    app: Forge,
    make_server_app: MakeServerApp,
    token: MakeToken,
    database: Database,
    work: Work,
    make_app: Any,
) -> None:
    await work(app)  # which makes the types known
    transport = httpx.ASGITransport(make_server_app(make_app()))
    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as elsewhere:
        good = await dispatched(elsewhere, token("user"), "export_users", args={"format": "csv"})
        bad = await elsewhere.post(
            "/_api/jobs/export_users/dispatch", json={"args": {"rows": 1}}, headers=token("user")
        )

    assert (await app.get(good)).max_attempts == 3
    assert paths(bad) == ["$.args"]


async def test_every_fault_of_an_input_has_its_path(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    answer = await http.post(
        "/_api/jobs/export_users/dispatch", json={"args": {"rows": "x"}}, headers=token("user")
    )

    assert sorted(paths(answer)) == ["$.args.format", "$.args.rows"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"arguments": {}}, "$.arguments"),
        ({"priority": "urgent"}, "$.priority"),
        ({"priority": 51}, "$.priority"),
        ({"delay": "soon"}, "$.delay"),
        ({"delay": "-5s"}, "$.delay"),
        ({"delay": 5}, "$.delay"),
        ({"scheduled_at": "tomorrow"}, "$.scheduled_at"),
        ({"scheduled_at": "2026-01-01T00:00:00"}, "$.scheduled_at"),
        ({"scheduled_at": 12}, "$.scheduled_at"),
        ({"tenant_id": 2**63}, "$.tenant_id"),
        ({"tenant_id": "7"}, "$.tenant_id"),
        ({"tenant_id": True}, "$.tenant_id"),
        ({"correlation_id": "x"}, "$.correlation_id"),
        ({"payload_version": "x" * 33}, "$.payload_version"),
        ({"idempotency_key": ""}, "$.idempotency_key"),
        ({"idempotency_key": "a\u0000b"}, "$.idempotency_key"),
        ({"idempotency_key": "x" * 256}, "$.idempotency_key"),
        ({"queue": " "}, "$.queue"),
        ({"tags": "a"}, "$.tags"),
        ({"tags": ["a", ""]}, "$.tags[1]"),
        ({"args": {"deep": {"nul": "\u0000"}}}, "$.args.deep.nul"),
        ([], "$"),
    ],
)
async def test_a_bad_option_is_refused_with_its_path(
    http: httpx.AsyncClient, token: MakeToken, psql: "Psql[Any]", body: Any, path: str
) -> None:
    answer = await http.post("/_api/jobs/send_mail/dispatch", json=body, headers=token("user"))

    assert paths(answer) == [path]
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


async def test_delay_and_scheduled_at_conflict(http: httpx.AsyncClient, token: MakeToken) -> None:
    body = {"delay": "1h", "scheduled_at": "2136-01-01T00:00:00Z"}

    answer = await http.post("/_api/jobs/send_mail/dispatch", json=body, headers=token("user"))

    assert code(answer) == (422, "invalid")


@pytest.mark.parametrize("body", [b"{", b"\xff", b"{'a': 1}", b"[" * 10_000])
async def test_invalid_json_is_a_bad_request(
    http: httpx.AsyncClient, token: MakeToken, body: bytes
) -> None:
    headers = token("user") | {"Content-Type": "application/json"}

    answer = await http.post("/_api/jobs/send_mail/dispatch", content=body, headers=headers)

    assert code(answer) == (400, "bad_request")


async def test_form_body_is_unsupported(http: httpx.AsyncClient, token: MakeToken) -> None:
    answer = await http.post(
        "/_api/jobs/send_mail/dispatch", data={"args": "{}"}, headers=token("user")
    )

    assert code(answer) == (415, "unsupported_media_type")


async def test_an_input_that_is_too_large_is_refused(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    answer = await http.post(
        "/_api/jobs/send_mail/dispatch", json={"args": {"x": "y" * 300_000}}, headers=token("user")
    )

    assert paths(answer) == ["$.args"]
