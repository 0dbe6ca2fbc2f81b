"""Tenants are apart by their tokens alone, where the server's login is the owner of the tables."""

import pytest

from forge import Forge
from forge.http.rights import RIGHTS, Tenancy
from forge.store.database import Database
from tests.http.conftest import MakeServerApp, MakeToken, Serve
from tests.http.jobs import add_jobs
from tests.http.matrix import CANARY, OTHER, asking, callers, expected
from tests.http.test_access_matrix import action_of_all, mutation_of_all


@pytest.fixture
async def address(
    app: Forge, make_server_app: MakeServerApp, serve: Serve, database: Database
) -> str:
    """A server for whose login row security does not hold."""
    add_jobs(app)
    app.register(mutation_of_all, action_of_all)
    api = make_server_app(app)
    api.state.forge.database_url = database.url
    return await serve(api)


@pytest.mark.parametrize("route", RIGHTS)
async def test_anothers_rows_are_not_shown_and_not_moved(
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

    assert status == expected(RIGHTS[route], stranger), shown
    assert CANARY not in shown
    if RIGHTS[route].tenancy is Tenancy.LIST:
        assert "send_mail" not in shown  # some lists show the types of jobs and no more
