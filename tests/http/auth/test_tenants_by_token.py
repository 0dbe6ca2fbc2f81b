"""Tenants are isolated by their tokens even without row security."""

import pytest

from forge import Forge
from forge.http.auth.permissions import PERMISSIONS, Tenancy
from forge.store.connection.database import Database
from tests.http.auth.test_access_matrix import action_of_all, mutation_of_all
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.job_client import add_jobs
from tests.http.matrix import CANARY, OTHER, asking, callers, expected


@pytest.fixture
async def address(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, database: Database
) -> str:
    """A server with a login that bypasses row security."""
    add_jobs(app)
    app.register(mutation_of_all, action_of_all)
    api = make_server_app(app)
    api.state.forge.database_url = database.url
    return await serve(api)


@pytest.mark.parametrize("route", PERMISSIONS)
async def test_rows_of_other_tenants_are_neither_shown_nor_changed(
    app: Forge, address: str, token: MakeToken, route: str
) -> None:
    (stranger,) = [
        caller
        for caller in callers(token)
        if caller.tenant == OTHER and caller.roles and len(caller.roles) == 2
    ]
    async with asking(app, address) as server:
        for place in (server.job, server.schedule, server.letter):
            await place()

        status, shown = await server.ask(route, stranger)

    assert status == expected(route, PERMISSIONS[route], stranger), shown
    assert CANARY not in shown
    if PERMISSIONS[route].tenancy is Tenancy.LIST:
        assert "send_mail" not in shown  # some lists show the types of jobs and no more
