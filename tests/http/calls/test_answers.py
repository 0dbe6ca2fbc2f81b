"""Mutations and actions over HTTP: access and responses."""

import logging
from typing import Any
from uuid import uuid4

import httpx
import pytest

from forge import ActionContext, Forge, MutationContext, Rejected
from forge.http.openapi.definitions import describe_calls
from tests.apps import Work
from tests.faults.kit.process import until
from tests.http.calls.conftest import ADD, User
from tests.http.conftest import MakeToken


async def test_a_mutation_is_called_and_its_job_runs_in_the_callers_name(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, welcome: list[Any]
) -> None:
    tie = uuid4()
    await work(app)

    answer = await http.post(
        "/_api/mutations/register_user",
        json={"email": "ada@example.org"},
        headers=token("user", tenant=7, name="ann") | {"X-Correlation-Id": str(tie)},
    )

    assert (answer.status_code, answer.json()) == (200, {"id": 1, "email": "ada@example.org"})
    assert answer.headers["content-type"] == "application/json"
    await until(lambda: bool(welcome), 10, "the job ran")
    auth = {"name": "ann", "roles": ["user"], "tenant_id": 7}
    assert welcome == [({"user": 1}, auth, 7, tie)]


async def test_rejection_has_the_handlers_status_and_code(
    http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    await psql.execute("insert into users (email) values ('ada')")

    answer = await http.post(
        "/_api/mutations/register_user", json={"email": "ada"}, headers=token("user")
    )

    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Conflict",
        "status": 409,
        "code": "email_taken",
        "detail": "the address is taken",
        "errors": [{"path": "$.email", "message": "is taken"}],
    }
    assert await psql.fetchval("select count(*) from forge_jobs") == 0


@pytest.mark.parametrize(
    ("status", "code"), [(404, "not_found"), (403, "forbidden"), (418, "bad_request")]
)
async def test_the_code_of_a_rejection_follows_from_its_status(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, status: int, code: str
) -> None:
    @app.action
    async def refuse(ctx: ActionContext) -> None:
        raise Rejected("no", status=status)

    answer = await http.post("/_api/actions/refuse", headers=token("user"))

    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize(
    ("body", "status", "code", "paths"),
    [
        (b'{"email": "a"}', 422, "invalid", ["$.email"]),
        (b'{"email": 5, "address": {}}', 422, "invalid", ["$.email", "$.address.street"]),
        (b'{"email": "a\\u0000da"}', 422, "invalid", ["$.email"]),
        (b'{"email": NaN}', 422, "invalid", ["$.email"]),
        (b"", 422, "invalid", ["$.email"]),
        (b"null", 422, "invalid", ["$.email"]),
        (b"[]", 422, "invalid", ["$"]),
        (b"[" * 100 + b"]" * 100, 422, "invalid", ["$" + "[0]" * 64]),
        (b"[" * 5000 + b"]" * 5000, 400, "bad_request", []),
        (b'{"email": ', 400, "bad_request", []),
        (b"\xff\xfe", 400, "bad_request", []),
    ],
    ids=range(11),
)
async def test_invalid_input_lists_the_path_of_each_fault(
    http: httpx.AsyncClient,
    token: MakeToken,
    psql: Any,
    body: bytes,
    status: int,
    code: str,
    paths: list[str],
) -> None:
    answer = await http.post(
        "/_api/mutations/register_user",
        content=body,
        headers=token("user") | {"Content-Type": "application/json"},
    )

    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), problem
    assert [fault["path"] for fault in problem.get("errors", [])] == paths
    assert await psql.fetchval("select count(*) from users") == 0


async def test_invalid_json_and_large_bodies_are_refused(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    post = "/_api/mutations/register_user"
    form = await http.post(post, data={"email": "ada"}, headers=token("user"))
    limit = app.config.payload.max_input
    large = await http.post(post, json={"email": "a" * limit}, headers=token("user"))
    tie = await http.post(
        post, json={"email": "ada"}, headers=token("user") | {"X-Correlation-Id": "no"}
    )

    assert (form.status_code, form.json()["code"]) == (415, "unsupported_media_type")
    assert (large.status_code, large.json()["code"]) == (422, "invalid")
    assert tie.json()["errors"][0]["path"] == "header.x-correlation-id"


async def test_required_roles_of_calls(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    for role in ("user", "staff", "manager"):

        @app.action(name=f"for_{role}", role=role)
        async def call(ctx: ActionContext) -> list[str]:
            assert ctx.auth is not None
            return list(ctx.auth.roles)

    async def status(name: str, *roles: str) -> int:
        headers = token(*roles) if roles else {}
        return (await http.post(f"/_api/actions/{name}", headers=headers)).status_code

    assert [await status("for_user", *who) for who in ([], ["user"], ["staff"])] == [401, 200, 200]
    assert [await status("for_staff", *who) for who in (["user"], ["staff"])] == [403, 200]
    managers = (["staff"], ["manager", "user"], ["staff", "manager"])
    assert [await status("for_manager", *who) for who in managers] == [403, 403, 200]


async def test_unknown_call_is_not_found(http: httpx.AsyncClient, token: MakeToken) -> None:
    paths = ("/_api/mutations/nothing", "/_api/actions/register_user")

    answers = [await http.post(path, json={}, headers=token("user")) for path in paths]
    unknown = [await http.post(path, json={}) for path in paths]

    assert [(a.status_code, a.json()["code"]) for a in answers] == [(404, "not_found")] * 2
    assert [a.status_code for a in unknown] == [401, 401]


async def test_a_tenants_caller_cannot_dispatch_for_another(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    @app.mutation
    async def reach(ctx: MutationContext, tenant: int) -> None:
        await ctx.db.execute(ADD, "ada")
        await ctx.dispatch_job("welcome", {}, tenant_id=tenant)

    async def status(tenant: int | None) -> int:
        answer = await http.post(
            "/_api/mutations/reach", json={"tenant": 8}, headers=token("user", tenant=tenant)
        )
        return answer.status_code

    assert await status(7) == 403
    assert await psql.fetchval("select count(*) from users") == 0
    assert await status(None) == 200
    assert await psql.fetchval("select array_agg(tenant_id) from forge_jobs") == [8]


async def test_mutation_runs_with_the_servers_grants(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    @app.mutation
    async def meddle(ctx: MutationContext, sql: str) -> None:
        assert await ctx.db.fetchval("select current_user") == "forge_api"
        await ctx.db.execute(sql)

    for sql in ("update forge_jobs set status = 'cancelled'", "delete from users"):
        answer = await http.post("/_api/mutations/meddle", json={"sql": sql}, headers=token("user"))
        assert (answer.status_code, answer.json()["code"]) == (500, "internal")
        assert "permission" not in answer.text


async def test_handler_error_is_an_internal_error(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, caplog: pytest.LogCaptureFixture
) -> None:
    @app.mutation
    async def wrong_job(ctx: MutationContext) -> None:
        await ctx.dispatch_job("unknown_type", {"secret": "xyzzy"})

    @app.mutation
    async def wrong_output(ctx: MutationContext) -> User:
        return {"secret": "xyzzy"}  # type: ignore[return-value]

    @app.mutation
    async def broken(ctx: MutationContext) -> None:
        raise LookupError("xyzzy")

    for name in ("wrong_job", "wrong_output", "broken"):
        caplog.clear()

        answer = await http.post(f"/_api/mutations/{name}", headers=token("user"))

        assert (answer.status_code, answer.json()["code"]) == (500, "internal")
        assert "xyzzy" not in answer.text
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        assert caplog.records[0].exc_info is not None


async def test_each_call_is_described_with_its_own_types(app: Forge) -> None:
    @app.action(role="staff")
    async def shout(ctx: ActionContext, text: str, times: int = 1) -> str:
        return text.upper() * times

    paths, schemas = describe_calls(app.calls.values())

    register = paths["/_api/mutations/register_user"]["post"]
    assert register["summary"] == "Register a user."
    taken = register["requestBody"]["content"]["application/json"]["schema"]
    assert taken["required"] == ["email"]
    (address,) = schemas
    assert taken["properties"]["address"]["anyOf"][0] == {"$ref": f"#/components/schemas/{address}"}
    given = register["responses"]["200"]["content"]["application/json"]["schema"]
    assert set(given["properties"]) == {"id", "email"}
    shouted = paths["/_api/actions/shout"]["post"]
    taken = shouted["requestBody"]["content"]["application/json"]["schema"]
    assert (taken["required"], taken["additionalProperties"]) == (["text"], False)
    assert shouted["x-forge-role"] == "staff"
