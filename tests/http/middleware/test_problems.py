"""Every error is a problem with a code, a status and what to do; nothing is leaked."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel, SecretStr
from starlette.requests import ClientDisconnect

from forge import Forge, MutationContext
from forge.core.errors import (
    DatabaseUnavailable,
    ForgeError,
    InvalidPayload,
    InvalidValue,
    SchemaMissing,
    StatementRefused,
    UnknownJob,
    UnknownJobType,
    UnknownSchedule,
)
from forge.http.problems.problem import MAX_FAULTS, MEDIA_TYPE, PROBLEM_TYPES, Problem
from tests.faults.kit.process import until
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.surface.test_reference import table


class Wish(BaseModel):
    count: int
    password: SecretStr
    tags: list[int] = []


@pytest.fixture
def api(app: Forge, make_server_app: MakeServerApp) -> FastAPI:
    """The server with routes that fail."""
    api = make_server_app(app)

    @api.post("/wish")
    async def new_job(new_job: Wish, limit: int = 1) -> dict[str, int]:
        return {"count": new_job.count}

    return api


@pytest.fixture
async def client(api: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(api)
    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as client:
        yield client


def refused(sqlstate: str) -> StatementRefused:
    error = StatementRefused("the database refused: hush")
    error.__cause__ = asyncpg.PostgresError.new({"C": sqlstate, "M": "hush"})
    return error


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidPayload("input.n must be a number", "$.n"), 422, "invalid"),
        (InvalidValue("priority must be one of …"), 422, "invalid"),
        (UnknownJobType("unknown job type"), 404, "unknown_job_type"),
        (UnknownJob.of(uuid4()), 404, "not_found"),
        (UnknownSchedule("there is no schedule 7"), 404, "not_found"),
        (DatabaseUnavailable("the database at hush does not answer"), 503, "unavailable"),
        (SchemaMissing("hush"), 503, "unavailable"),
        (refused("23505"), 409, "conflict"),
        (refused("23514"), 409, "conflict"),
        (refused("22021"), 422, "invalid"),
        (refused("22003"), 422, "invalid"),
        (refused("42501"), 500, "internal"),
        (ForgeError("hush"), 500, "internal"),
        (ZeroDivisionError("hush"), 500, "internal"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "hush"), 422, "invalid"),
        (ClientDisconnect(), 400, "bad_request"),
        (ExceptionGroup("hush", [ValueError("hush")]), 500, "internal"),
    ],
)
async def test_each_error_becomes_its_problem(
    api: FastAPI, client: httpx.AsyncClient, error: Exception, status: int, code: str
) -> None:
    @api.get("/fail")
    async def fail() -> None:
        raise error

    answer = await client.get("/fail")

    body = answer.json()
    assert (answer.status_code, body["code"], body["status"]) == (status, code, status)
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert body["title"] == PROBLEM_TYPES[code].title
    assert "hush" not in answer.text
    assert ("retry-after" in answer.headers) == (status == 503)


async def test_internal_errors_are_logged(
    api: FastAPI, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    @api.get("/fail")
    async def fail() -> None:
        raise ZeroDivisionError("the reason")

    await client.get("/fail")

    (record,) = [record for record in caplog.records if record.name == "forge.http"]
    assert record.levelno == logging.ERROR
    assert "the reason" in caplog.text


async def test_every_fault_has_its_path_and_no_value(client: httpx.AsyncClient) -> None:
    body = {"count": "hush", "tags": [1, "hush"], "password": ["hush"]}

    answer = await client.post("/wish", params={"limit": "hush"}, json=body)

    assert answer.status_code == 422
    paths = [fault["path"] for fault in answer.json()["errors"]]
    assert sorted(paths) == ["$.count", "$.password", "$.tags[1]", "query.limit"]
    assert "hush" not in answer.text


async def test_number_of_reported_faults_is_limited(client: httpx.AsyncClient) -> None:
    answer = await client.post("/wish", json={"count": 1, "password": "", "tags": ["x"] * 9000})

    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == MAX_FAULTS


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"null", 422),
        (b"[]", 422),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 100_000, 400),
        (b"[" * 900 + b"]" * 900, 422),
        (b'{"count": ' + b"9" * 5000 + b', "password": ""}', 400),
        (b'{"count": NaN, "password": ""}', 422),
        (b'{"count": "\\ud800", "password": "\\u0000"}', 422),
    ],
)
async def test_invalid_body_is_refused(
    client: httpx.AsyncClient, content: bytes, status: int
) -> None:
    headers = {"content-type": "application/json"}

    answer = await client.post("/wish", content=content, headers=headers)

    assert answer.status_code == status, answer.text
    assert answer.json()["code"] == ("bad_request" if status == 400 else "invalid")


async def test_unknown_path_and_method_are_problems(client: httpx.AsyncClient) -> None:
    missing = await client.get("/nowhere")
    wrong = await client.delete("/livez")

    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in wrong.headers["allow"]


@pytest.mark.parametrize("address", ["/a%00b", "/livez?x=%00", "/_api/jobs/%00/watch_token"])
async def test_nul_in_the_url_is_refused(client: httpx.AsyncClient, address: str) -> None:
    answer = await client.get(address)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


@pytest.mark.parametrize("address", ["/%ED%A0%80", "/%FF", "/livez/%C3%28"])
async def test_url_that_is_not_utf8_is_not_an_internal_error(
    api: FastAPI, serve: Serve, address: str
) -> None:
    async with httpx.AsyncClient(base_url=await serve(api)) as client:
        assert (await client.get(address)).status_code in (404, 422)


async def test_declared_large_body_is_refused(api: FastAPI, client: httpx.AsyncClient) -> None:
    limit = api.state.forge.config.payload.max_input + 1024**2

    large = await client.post("/wish", content=b" " * (limit + 1))
    largest = await client.post("/wish", content=b" " * limit)

    assert (large.status_code, large.json()["code"]) == (413, "too_large")
    assert largest.status_code == 422


async def test_undeclared_large_body_is_refused(api: FastAPI, serve: Serve) -> None:
    limit = api.state.forge.config.payload.max_input + 1024**2
    host, port = (await serve(api)).removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    # In chunks and without an end: the byte that is too many is the last that is sent.
    writer.write(b"POST /wish HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
    writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
    writer.write(b"%x\r\n%s\r\n1\r\n \r\n" % (limit, b" " * limit))
    await writer.drain()

    answer = await asyncio.wait_for(reader.read(), 30)  # to the end: the server hangs up
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"code":"too_large"' in answer


@pytest.mark.parametrize("path", ["/_api/jobs/any/dispatch", "/_api/mutations/touch", "/wish"])
async def test_disconnect_within_a_body_is_not_an_internal_error(
    app: Forge,
    api: FastAPI,
    serve: Serve,
    token: MakeToken,
    caplog: pytest.LogCaptureFixture,
    path: str,
) -> None:
    @app.mutation
    async def touch(ctx: MutationContext) -> None: ...

    host, port = (await serve(api)).removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))

    bearer = token("user")["Authorization"]
    writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n".encode())
    writer.write(b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    await writer.drain()
    writer.close()

    counted = api.state.forge.metrics.api.http_requests_total
    await until(lambda: counted.series(), 10, "the request is over")
    assert [labels[2] for labels, _ in counted.series()] == ["400"]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_every_response_has_security_headers(client: httpx.AsyncClient) -> None:
    for answer in (await client.get("/livez"), await client.get("/nowhere")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_problems_follow_rfc_9457() -> None:
    body = Problem("conflict", "it is completed").body()

    assert set(body) == {"type", "title", "status", "code", "detail"}
    assert json.loads(bytes(Problem("conflict", "it is completed").answer().body)) == body


def test_every_code_is_documented() -> None:
    rows = table("errors.md", "code")

    documented: Any = {row[0].strip("`"): (int(row[1]), row[2]) for row in rows}
    assert documented == {
        code: (found.status, found.meaning) for code, found in PROBLEM_TYPES.items()
    }
