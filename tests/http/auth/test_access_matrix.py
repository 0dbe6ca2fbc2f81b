"""Every route × every caller × every tenant's rows, compared with the table of permissions."""

import json
from pathlib import Path
from typing import Any

import pytest

import forge
from forge import Forge
from forge.config.server import ServerConfig
from forge.http.auth.access import Role
from forge.http.auth.permissions import PERMISSIONS, Tenancy
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.job_client import add_jobs
from tests.http.matrix import CANARY, OTHER, OWN, READING, asking, callers, expected, routes

# What these lists show of a job is no more than its type.
WITHOUT_CONTENT = ("counts", "/queue/", "/statistics/")
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "http.md"


@forge.mutation
async def mutation_of_all(ctx: Any, text: str) -> str:
    """Return the input."""
    return text


@forge.action
async def action_of_all(ctx: Any, text: str) -> str:
    """Return the input."""
    return text


@pytest.fixture
async def address(app: Forge, make_server_app: MakeServerApp, serve: Serve) -> str:
    add_jobs(app)
    app.register(mutation_of_all, action_of_all)
    return await serve(make_server_app(app))


def test_permissions_table_matches_the_routes(app: Forge, make_server_app: MakeServerApp) -> None:
    found = routes(make_server_app(app))

    assert set(found) == set(PERMISSIONS)
    for route, need in found.items():
        assert need == PERMISSIONS[route].required_role, route


@pytest.mark.timeout(300)
@pytest.mark.parametrize("route", PERMISSIONS)
async def test_every_caller_gets_the_documented_response(
    app: Forge, address: str, token: MakeToken, route: str
) -> None:
    right = PERMISSIONS[route]
    async with asking(app, address) as server:
        for caller in callers(token):
            status, shown = await server.ask(route, caller)

            assert status == expected(route, right, caller), (route, caller.label, shown)
            if caller.tenant not in (OWN, None) or status != 200:
                assert CANARY not in shown, (route, caller.label)


@pytest.mark.parametrize(
    "route", [r for r, right in PERMISSIONS.items() if right.tenancy is Tenancy.LIST]
)
async def test_lists_show_tenants_their_rows_and_operators_all(
    app: Forge, address: str, token: MakeToken, route: str
) -> None:
    async with asking(app, address) as server:
        await server.job()
        await server.schedule()
        await server.letter()
        shown = {}
        for caller in callers(token):
            if caller.roles == {Role.STAFF, Role.MANAGER}:
                shown[caller.tenant] = (await server.ask(route, caller))[1]

    marks = CANARY if not any(part in route for part in WITHOUT_CONTENT) else "send_mail"
    assert {tenant: marks in text for tenant, text in shown.items()} == {
        OWN: True,
        OTHER: False,
        None: True,
    }


async def test_me_lists_the_routes_that_the_caller_may_call(
    app: Forge, make_server_app: MakeServerApp, token: MakeToken
) -> None:
    async with asking(app, make_server_app(app)) as server:
        for caller in callers(token):
            status, shown = await server.ask("GET /_api/me", caller)
            if status != 200:
                continue

            me = json.loads(shown)
            may_call = {
                route
                for route, right in PERMISSIONS.items()
                if expected(route, right, caller._replace(tenant=caller.tenant and OWN)) == 200
            }
            assert set(me["allowed"]) == may_call, caller.label
            assert me["roles"] == sorted(caller.roles or ())
            assert me["tenant_id"] == caller.tenant
            assert me["read_only"] is (Role.VIEWER in (caller.roles or ()))


@pytest.mark.timeout(120)
async def test_read_only_server_rejects_every_change_of_every_caller(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, token: MakeToken
) -> None:
    add_jobs(app)
    app.register(mutation_of_all, action_of_all)
    app.config = app.config.model_copy(update={"server": ServerConfig(read_only=True)})
    everything = [c for c in callers(token) if c.roles == {Role.STAFF, Role.MANAGER}]
    caller = next(c for c in everything if c.tenant is None)

    async with asking(app, await serve(make_server_app(app))) as server:
        for route in PERMISSIONS:
            status, shown = await server.ask(route, caller)

            if route.split()[0] in READING:
                assert status == 200, (route, shown)
            else:
                assert (status, json.loads(shown)["code"]) == (403, "read_only"), route
        me = json.loads((await server.ask("GET /_api/me", caller))[1])

    assert me["read_only"]
    assert {route.split()[0] for route in me["allowed"]} == set(READING)


def test_documented_permissions_match() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    documented = {tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines}

    for route, right in PERMISSIONS.items():
        assert (f"`{route}`", right.who, str(right.tenancy)) in documented
