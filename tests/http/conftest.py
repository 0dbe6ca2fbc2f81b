"""The server on the test's database: in the test's own loop, or behind a real port."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import jwt
import pytest
import uvicorn
from fastapi import FastAPI

from forge import Forge
from forge.cli.processes.serving import address_of, listen, make_server
from forge.config.server import AuthConfig
from forge.http import create_app
from forge.store.connection.database import Database
from forge.store.connection.tenant import Callers
from forge.store.roles import grant_roles
from tests.apps import app, make_app, work
from tests.dead_letters.conftest import bury, flaky
from tests.faults.kit.process import until
from tests.http.admins import MANAGER, Admin

__all__ = ["app", "bury", "flaky", "make_app", "work"]

SECRET = "a secret of the tests, which is long enough"
ISSUER, AUDIENCE = "https://login.test", "forge"
AUTH = AuthConfig.model_validate(
    {
        "secret": SECRET,
        "jwt": {
            "algorithm": "HS256",
            "secret": SECRET,
            "issuer": ISSUER,
            "audience": AUDIENCE,
            "operators": True,
        },
    }
)

Headers = dict[str, str]
MakeToken = Callable[..., Headers]
MakeServerApp = Callable[[Forge], FastAPI]
Serve = Callable[[FastAPI], Awaitable[str]]


@pytest.fixture
async def api_url(database: Database) -> str:
    """The test's database as the role forge_api, with signed callers."""
    database.callers = Callers(SECRET)
    await grant_roles(database)
    return database.url.replace("//forge@", "//forge_api@")


@pytest.fixture
async def make_server_app(api_url: str) -> AsyncIterator[MakeServerApp]:
    """Make the ASGI app of a Forge app; it has connections of its own, as forge_api."""
    made: list[Forge] = []

    def make(app: Forge) -> FastAPI:
        twin = app.clone()
        twin.database_url = api_url
        twin.config = app.config.model_copy(update={"auth": AUTH})
        made.append(twin)
        return create_app(twin)

    yield make
    for twin in made:
        await twin.close()


@pytest.fixture
def token() -> MakeToken:
    """Make the headers of a caller: `token("user", "staff", tenant=7)`; no tenant: an operator."""

    def make(
        *roles: str, tenant: int | None = None, name: str = "ann", lifetime: float = 600
    ) -> Headers:
        claims: dict[str, Any] = {"sub": name, "roles": list(roles), "exp": time.time() + lifetime}
        claims |= {"iss": ISSUER, "aud": AUDIENCE}
        if tenant is not None:
            claims["tenant_id"] = tenant
        return {"Authorization": f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"}

    return make


@pytest.fixture
async def http(app: Forge, make_server_app: MakeServerApp) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the test's `app`, without a token and without a network between."""
    transport = httpx.ASGITransport(make_server_app(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as client:
        yield client


@pytest.fixture
def admin(http: httpx.AsyncClient, token: MakeToken) -> Admin:
    """The manager of tenant 123, whose name is ann."""
    return Admin(http, token(*MANAGER, tenant=123))


@pytest.fixture
def operator(http: httpx.AsyncClient, token: MakeToken) -> Admin:
    """A manager who sees every tenant's rows."""
    return Admin(http, token(*MANAGER, name="root"))


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve an ASGI app on a real port of loopback, as `forge server` does; return its address."""
    running: list[tuple[uvicorn.Server, asyncio.Task[None]]] = []

    async def start(api: FastAPI) -> str:
        listener = listen("127.0.0.1", 0)
        server = make_server(api)
        server.config.timeout_graceful_shutdown = 2
        task = asyncio.create_task(server.serve([listener]))
        running.append((server, task))
        await until(lambda: server.started or task.done(), 30, "the server has started")
        assert not task.done(), "the server did not start"
        return address_of(listener)

    yield start
    for server, task in running:
        server.should_exit = True
        await asyncio.wait_for(task, 30)
