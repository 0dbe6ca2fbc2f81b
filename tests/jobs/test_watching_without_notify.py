"""Watching a job without permission to notify: polling shows the result."""

from typing import Any

from forge import Config, Forge, JobContext
from forge.store.connection.database import Database
from forge.store.roles import grant_roles
from tests.apps import Work


async def test_a_role_that_cannot_notify_gets_the_result(
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

        # One after the other: a failed first poll must not be the last one.
        assert [await handle.result(20) for handle in handles] == ["pong"] * 3
