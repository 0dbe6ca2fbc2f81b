"""Every route × every caller × everybody's rows: each cell of the matrix is as its table says."""

from pathlib import Path
from typing import Any

import pytest

import forge
from forge import Forge
from forge.http.rights import RIGHTS, Tenancy
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.jobs import add_jobs
from tests.http.matrix import CANARY, OTHER, OWN, asking, callers, expected, routes

# What these lists show of a job is no more than its type.
WITHOUT_CONTENT = ("counts", "/queue/", "/statistics/")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "http.md"


@forge.mutation
async def mutation_of_all(ctx: Any, text: str) -> str:
    """Give back what was given."""
    return text


@forge.action
async def action_of_all(ctx: Any, text: str) -> str:
    """Give back what was given."""
    return text


@pytest.fixture
async def address(app: Forge, make_server_app: MakeServerApp, serve: Serve) -> str:
    add_jobs(app)
    app.register(mutation_of_all, action_of_all)
    return await serve(make_server_app(app))


def test_every_route_has_a_row_and_asks_for_what_the_row_says(
    app: Forge, make_server_app: MakeServerApp
) -> None:
    found = routes(make_server_app(app))

    assert set(found) == set(RIGHTS)
    for route, need in found.items():
        if not route.startswith("WS"):  # which asks at each subscription
            assert need == RIGHTS[route].need, route


@pytest.mark.timeout(300)
@pytest.mark.parametrize("route", RIGHTS)
async def test_every_cell_is_as_the_table_says(
    app: Forge, address: str, token: MakeToken, route: str
) -> None:
    right = RIGHTS[route]
    async with asking(app, address) as server:
        for caller in callers(token):
            status, shown = await server.ask(route, caller)

            assert status == expected(right, caller), (route, caller.label, shown)
            if caller.tenant not in (OWN, None) or status != 200:
                assert CANARY not in shown, (route, caller.label)


@pytest.mark.parametrize(
    "route", [r for r, right in RIGHTS.items() if right.tenancy is Tenancy.LIST]
)
async def test_a_list_shows_a_tenant_its_own_rows_and_an_operator_all(
    app: Forge, address: str, token: MakeToken, route: str
) -> None:
    async with asking(app, address) as server:
        await server.job()
        await server.schedule()
        await server.letter()
        shown = {}
        for caller in callers(token):
            if caller.roles and len(caller.roles) == 2:
                shown[caller.tenant] = (await server.ask(route, caller))[1]

    marks = CANARY if not any(part in route for part in WITHOUT_CONTENT) else "send_mail"
    assert {tenant: marks in text for tenant, text in shown.items()} == {
        OWN: True,
        OTHER: False,
        None: True,
    }


def test_the_page_has_the_same_table() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    told = {tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines}

    for route, right in RIGHTS.items():
        assert (f"`{route}`", right.who, str(right.tenancy)) in told
