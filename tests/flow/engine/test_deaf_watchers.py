"""Watching where notifications are forbidden: the poll shows all the same."""

from typing import Any

from forge import Config, Forge, JobContext
from forge.store.database import Database
from forge.store.roles import grant_roles
from tests.flow.engine.conftest import Work


async def test_who_may_not_notify_gets_the_result_all_the_same(
    app: Forge, work: Work, database: Database, psql: Any
) -> None:
    @app.job
    async def ping(ctx: JobContext) -> str:
        return "pong"

    await grant_roles(database)
    await psql.execute("revoke execute on function pg_notify(text, text) from public")
    await work(app)

    guests_url = database.url.replace("//forge@", "//forge_api@")
    async with Forge(Config(), database_url=guests_url) as guest:
        handles = [await guest.dispatch("ping", {}) for _ in range(3)]

        # One after the other: the first look that fails must not have been the last.
        assert [await handle.result(20) for handle in handles] == ["pong"] * 3
