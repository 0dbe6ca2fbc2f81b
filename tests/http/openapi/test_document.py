"""The OpenAPI document: complete, consistent and access-controlled."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Mount

import forge
from forge import Forge, JobContext
from forge.http.routes import required_role_of, walk
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.job_client import add_jobs, code

OPEN = {"livez", "readyz"}
# On loopback, or with a watch token.
WITHOUT_TOKEN = {"openapi", "follow_job", "get_live_job"}


class Person(BaseModel):
    """A recursive model."""

    name: str
    boss: "Person | None" = None


@pytest.fixture
async def document(app: Forge, http: httpx.AsyncClient, token: MakeToken) -> Any:
    """The document of an app with jobs and a mutation."""
    add_jobs(app)

    @app.job(name="greet people/all")
    async def greet(ctx: JobContext, input: Person) -> Person:
        return input

    @forge.mutation
    async def rename(ctx: Any, input: Person) -> Person:
        return input

    app.register(rename)
    return (await http.get("/openapi.json", headers=token("staff"))).json()


def operations(document: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def references(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                if key == "$ref" and isinstance(inner, str):
                    yield inner
                yield from references(inner)
        case list():
            for inner in value:
                yield from references(inner)


def found(document: Any, reference: str) -> Any:
    value = document
    for step in reference.removeprefix("#/").split("/"):
        value = value[step.replace("~1", "/")]
    return value


async def test_every_reference_leads_somewhere(document: Any) -> None:
    leads = set(references(document))

    assert len(leads) > 10
    for reference in leads:
        assert found(document, reference) is not None


async def test_every_operation_has_a_name_of_its_own(document: Any) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]

    assert len(names) == len(set(names))


async def test_every_operation_lists_its_problems(document: Any) -> None:
    for method, path, operation in operations(document):
        statuses = set(operation["responses"])
        assert statuses >= {"413", "422", "500"}, (method, path)
        for status, documented in operation["responses"].items():
            if int(status) >= 400:
                assert set(documented["content"]) == {"application/problem+json"}, (
                    method,
                    path,
                    status,
                )
        if "{" in path:
            assert "404" in statuses, (method, path)
        if operation["operationId"] in OPEN:
            assert "security" not in operation
            continue
        other = [{}] if operation["operationId"] in WITHOUT_TOKEN else []
        assert operation["security"] == [{"bearer": []}, *other], (method, path)
        assert operation["x-forge-role"] in ("user", "staff", "manager")
        assert statuses >= {"401", "403", "503"}, (method, path)
        if "requestBody" in operation:
            assert "400" in statuses, (method, path)


async def test_every_route_is_in_the_document(
    app: Forge, make_server_app: MakeServerApp, document: Any
) -> None:
    documented = {(method.upper(), path) for method, path, _ in operations(document)}

    routes = [
        (method, route.path_format, required_role_of(route))
        for route in walk(make_server_app(app).routes)
        if getattr(route, "include_in_schema", False) and hasattr(route, "path_format")
        for method in getattr(route, "methods", None) or ()
    ]

    assert len(routes) > 15
    for method, path, need in routes:
        assert (method, path) in documented
        assert document["paths"][path][method.lower()].get("x-forge-role") == need


async def test_every_type_can_be_dispatched_with_its_own_schema(document: Any) -> None:
    operation = document["paths"]["/_api/jobs/export_users/dispatch"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    body = Draft202012Validator(document | schema)

    assert operation["description"] == "Export the users of a tenant.\n\nAs one file."
    assert body.is_valid({"args": {"format": "csv"}})
    assert not body.is_valid({"args": {"rows": 1}})
    assert not body.is_valid({"args": {"format": "csv"}, "unknown": 1})
    many = document["paths"]["/_api/jobs/export_users/dispatch_many"]["post"]
    bodies = Draft202012Validator(
        document | many["requestBody"]["content"]["application/json"]["schema"]
    )
    assert bodies.is_valid({"inputs": [{"format": "csv"}]})
    assert not bodies.is_valid({"inputs": [{"format": 1}]})


async def test_a_type_with_an_odd_name_and_a_model_in_itself_is_described(document: Any) -> None:
    operation = document["paths"]["/_api/jobs/greet%20people%2Fall/dispatch"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]

    body = Draft202012Validator(document | schema)

    assert body.is_valid({"args": {"name": "ann", "boss": {"name": "bob", "boss": None}}})
    assert not body.is_valid({"args": {"name": "ann", "boss": {"nom": "bob"}}})


async def test_a_type_with_an_odd_name_can_be_dispatched_there(
    document: Any, http: httpx.AsyncClient, token: MakeToken
) -> None:
    answer = await http.post(
        "/_api/jobs/greet%20people%2Fall/dispatch",
        json={"args": {"name": "ann"}},
        headers=token("user"),
    )

    assert answer.status_code == 202


async def test_mutations_are_described(document: Any) -> None:
    operation = document["paths"]["/_api/mutations/rename"]["post"]

    assert operation["operationId"] == "mutation.rename"
    assert operation["security"] == [{"bearer": []}]


async def test_document_requires_staff(http: httpx.AsyncClient, token: MakeToken) -> None:
    assert code(await http.get("/openapi.json")) == (401, "unauthenticated")
    assert code(await http.get("/openapi.json", headers=token("user"))) == (403, "forbidden")
    assert (await http.get("/openapi.json", headers=token("staff"))).status_code == 200


async def test_caller_on_loopback_needs_no_token(
    app: Forge, make_server_app: MakeServerApp, serve: Serve
) -> None:
    address = await serve(make_server_app(app))

    async with httpx.AsyncClient(base_url=address) as client:
        assert (await client.get("/openapi.json")).status_code == 200
        for disguise in (
            {"Host": "evil.example"},
            {"X-Forwarded-For": "127.0.0.1"},
            {"Forwarded": "for=10.0.0.1"},
        ):
            answer = await client.get("/openapi.json", headers=disguise)
            assert code(answer) == (401, "unauthenticated")


async def test_mounted_server_documents_its_prefix(
    app: Forge, make_server_app: MakeServerApp, token: MakeToken
) -> None:
    host = Starlette(routes=[Mount("/background", make_server_app(app))])
    transport = httpx.ASGITransport(host)

    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as client:
        answer = await client.get("/background/openapi.json", headers=token("staff"))

    assert answer.json()["servers"] == [{"url": "/background"}]
