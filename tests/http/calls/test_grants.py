"""A mutation or an action that uses a table for which its login has no grant."""

import logging
from typing import Any

import httpx
import pytest

from forge import ActionContext, Config, Forge, GrantMissing, MutationContext
from tests.http.conftest import MakeToken
from tests.http.job_client import code


@pytest.fixture(autouse=True)
async def invoices(psql: Any, app: Forge) -> None:
    await psql.execute("create table invoices (id bigint)")

    @app.mutation
    async def write_invoice(ctx: MutationContext) -> None:
        await ctx.db.execute("insert into invoices values (1)")

    @app.action
    async def count_invoices(ctx: ActionContext) -> int:
        return await ctx.db.fetchval("select count(*) from invoices")


@pytest.mark.parametrize(
    ("kind", "name"), [("mutation", "write_invoice"), ("action", "count_invoices")]
)
async def test_missing_grant_is_reported_and_logged(
    http: httpx.AsyncClient,
    token: MakeToken,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    name: str,
) -> None:
    with caplog.at_level(logging.ERROR, logger="forge"):
        answer = await http.post(f"/_api/{kind}s/{name}", json={}, headers=token("user"))

    assert code(answer) == (500, "internal")
    assert answer.json()["detail"] == (
        f"the server's database login lacks a grant for the {kind} {name}; "
        "the server's log has the details"
    )
    assert f"the {kind} {name} lacks a grant: permission denied for table invoices" in caplog.text
    assert "`grant select, insert on TABLE to forge_api`" in caplog.text


async def test_in_python_the_error_names_the_table_and_what_to_do(app: Forge, api_url: str) -> None:
    web = Forge(Config(), database_url=api_url)
    web.calls.update(app.calls)

    async with web:
        with pytest.raises(GrantMissing, match=r"denied for table invoices; grant what it needs"):
            await web.call("count_invoices")
