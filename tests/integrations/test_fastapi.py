"""The integration with FastAPI and Starlette, in a host application with its own sign-in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from starlette.applications import Starlette
from starlette.requests import HTTPConnection

from forge import Forge, JobContext, ScheduleContext
from forge.config.server import AuthConfig
from forge.core.errors import InvalidValue
from forge.integrations.fastapi import Caller, ForgeApp, Identity, Role, lifespan, mount
from tests.http.bearers import TOKEN, static
from tests.http.conftest import SECRET, Serve, api_url, serve
from tests.http.live_client import client

__all__ = ["api_url", "serve"]

SESSIONS = {"of-ann": Identity("ann", frozenset({Role.USER}), tenant_id=7)}
COOKIE = {"Cookie": "session=of-ann"}


async def signed_in(connection: HTTPConnection) -> Identity | None:
    if connection.cookies.get("session") == "banned":
        raise HTTPException(403, "this account is closed")
    return SESSIONS.get(connection.cookies.get("session", ""))


@pytest.fixture
async def shop(app: Forge, api_url: str) -> AsyncIterator[Forge]:
    """The host's app as it connects: as forge_api, with one static token."""

    @app.job
    async def pack(ctx: JobContext, input: dict[str, Any]) -> None: ...

    twin = app.clone()
    twin.database_url = api_url
    auth = AuthConfig.model_validate({"secret": SECRET, "tokens": [static()]})
    twin.config = app.config.model_copy(update={"auth": auth})
    yield twin
    await twin.close()


@pytest.fixture
async def http(shop: Forge) -> AsyncIterator[httpx.AsyncClient]:
    host = FastAPI()
    mount(host, "/forge", shop, authenticate=signed_in)

    @host.post("/orders")
    async def order(forge: ForgeApp, caller: Caller) -> dict[str, Any]:
        job = await forge.dispatch("pack", {}, tenant_id=caller.tenant_id, auth=caller.as_auth())
        return {"job_id": str(job.id), "by": caller.name}

    transport = httpx.ASGITransport(host)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as http:
        yield http


async def test_route_of_the_host_gets_the_app_and_the_caller(
    http: httpx.AsyncClient, app: Forge
) -> None:
    answer = await http.post("/orders", headers=COOKIE)

    job = await app.get(answer.json()["job_id"])
    assert answer.json()["by"] == "ann"
    assert (job.tenant_id, job.auth["name"]) == (7, "ann")


async def test_caller_of_a_route_may_send_a_token_of_forge(http: httpx.AsyncClient) -> None:
    with_token = await http.post("/orders", headers={"Authorization": f"Bearer {TOKEN}"})
    without = await http.post("/orders")
    closed = await http.post("/orders", headers={"Cookie": "session=banned"})

    assert with_token.status_code == 200
    assert without.status_code == 401
    assert without.headers["WWW-Authenticate"] == "Bearer"
    assert (closed.status_code, closed.json()["detail"]) == (403, "this account is closed")


async def test_mounted_api_knows_the_session_of_the_host(http: httpx.AsyncClient) -> None:
    by_session = await http.get("/forge/_api/me", headers=COOKIE)
    by_token = await http.get("/forge/_api/me", headers={"Authorization": f"Bearer {TOKEN}"})
    by_nobody = await http.get("/forge/_api/me")
    closed = await http.get("/forge/_api/me", headers={"Cookie": "session=banned"})
    by_another_site = await http.get(
        "/forge/_api/me", headers=COOKIE | {"Sec-Fetch-Site": "cross-site"}
    )

    assert (by_session.json()["name"], by_session.json()["tenant_id"]) == ("ann", 7)
    assert by_token.json()["tenant_id"] is None
    assert by_nobody.status_code == 401
    assert closed.status_code == 403
    assert by_another_site.status_code == 403


async def test_watch_token_of_a_session_follows_its_job(http: httpx.AsyncClient) -> None:
    job_id = (await http.post("/orders", headers=COOKIE)).json()["job_id"]

    made = await http.post(f"/forge/_api/jobs/{job_id}/watch_token", headers=COOKIE)
    token = {"watch_token": made.json()["watch_token"]}
    followed = await http.get(f"/forge/_api/jobs/{job_id}/live", params=token)
    other = await http.get(
        "/forge/_api/jobs/0192a0a4-0000-7000-8000-000000000000/live", params=token
    )

    assert (followed.status_code, followed.json()["status"]) == (200, "pending")
    assert other.status_code == 401


async def test_socket_of_a_session_ends_with_it_and_may_come_back(
    shop: Forge, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FastAPI()
    mount(host, "/forge", shop, authenticate=signed_in, session_seconds=1)
    address = await serve(host)

    async with client(f"{address}/forge", COOKIE) as socket:
        code = await socket.closed()
    async with client(f"{address}/forge", COOKIE) as again:
        await again.say("subscribe", job_id="0192a0a4-0000-7000-8000-000000000000")
        answer = await again.next()

    assert code == 4401
    assert answer["code"] == "not_found"


async def test_lifespan_opens_the_app_and_plants_cron_schedules(app: Forge) -> None:
    twin = app.clone()

    @twin.cron("0 3 * * *")
    async def nightly(ctx: ScheduleContext) -> None: ...

    steps: list[str] = []

    @asynccontextmanager
    async def own(host: FastAPI) -> AsyncIterator[dict[str, Any]]:
        steps.append("host starts")
        yield {"colour": "red"}
        steps.append("host ends")

    host = FastAPI()
    async with lifespan(twin, own)(host) as state:
        rows = await twin.schedules.list()
        steps.append("serves")

    assert [row.type for row in rows] == ["nightly"]
    assert state == {"colour": "red"}
    assert steps == ["host starts", "serves", "host ends"]


async def test_starlette_has_the_same_lifespan_and_mount(shop: Forge) -> None:
    host = Starlette(lifespan=lifespan(shop))
    mount(host, "/jobs", shop, authenticate=signed_in)

    transport = httpx.ASGITransport(host)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as http:
        answer = await http.get("/jobs/_api/me", headers=COOKIE)

    assert answer.json()["name"] == "ann"


async def test_missing_parts_name_what_to_call() -> None:
    host = FastAPI()

    @host.get("/app")
    async def app_of(forge: ForgeApp) -> None: ...

    @host.get("/caller")
    async def caller_of(caller: Caller) -> None: ...

    transport = httpx.ASGITransport(host)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as http:
        with pytest.raises(InvalidValue, match="lifespan=lifespan"):
            await http.get("/app")
        with pytest.raises(InvalidValue, match="call mount"):
            await http.get("/caller")
    with pytest.raises(InvalidValue, match="not 'forge'"):
        mount(host, "forge", Forge())
