"""SQL injected into a mutation of a real server reaches no further than its caller."""

import json
import time
from typing import Any

import httpx
import pytest

import forge
from forge import Forge
from forge.store.connection.tenant import Callers
from tests.http.conftest import SECRET, MakeServerApp, MakeToken, Serve
from tests.security.callers import signed

SEEN = "select tenant_id from forge_jobs order by 1 nulls last"
BECOME = "select set_config('forge.tenant_id', $${}$$, {})"
NOW = time.time()
CEO = json.dumps({"name": "ceo", "roles": ["staff", "manager"], "tenant_id": None})


@forge.mutation
async def run_sql(ctx: Any, statements: list[str]) -> list[list[Any]]:
    """Run what the caller wrote, as a mutation does that pastes its input into its statements."""
    answers: list[list[Any]] = []
    for statement in statements:
        try:
            async with ctx.db.transaction():
                found = await ctx.db.fetch(statement)
            answers.append([row[0] for row in found])
        except Exception as error:
            answers.append([f"refused: {error}"])
    return answers


@forge.mutation
async def run_script(ctx: Any, script: str, then: str) -> list[Any]:
    """Run several statements at once, which may end the mutation's own transaction."""
    await ctx.db.execute(script)
    return [row[0] for row in await ctx.db.fetch(then)]


@forge.mutation
async def order(ctx: Any) -> str:
    """Dispatch a job, as an innocent mutation does."""
    handle = await ctx.dispatch_job("plain", {"card": "of tenant two"})
    return str(handle.id)


@pytest.fixture
async def call(
    app: Forge,
    make_server_app: MakeServerApp,
    serve: Serve,
    token: MakeToken,
    psql: Any,
) -> Any:
    """Call a mutation of a real server for a tenant; its pool has one connection."""

    @app.job
    async def plain(ctx: Any, input: dict[str, Any]) -> None: ...

    app.register(run_sql, run_script, order)
    app.config = app.config.model_copy(
        update={"database": app.config.database.model_copy(update={"pool_size": 1})}
    )
    address = await serve(make_server_app(app))
    for tenant in (1, 2, None):
        await psql.execute("insert into forge_jobs (job_type, tenant_id) values ('x', $1)", tenant)

    async def call(name: str, tenant: int | None, **body: Any) -> httpx.Response:
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            headers = token("user", tenant=tenant, name=f"user of {tenant}")
            return await client.post(f"/_api/mutations/{name}", json=body, headers=headers)

    return call


FORGED = {
    "another tenant": "2",
    "an operator": "*",
    "unsigned": Callers().tenant(None),
    "with a guessed secret": signed({"tenant_id": 2}, "guess", at=NOW),
    "an expired caller": signed({"tenant_id": 2}, SECRET, at=NOW - 3600),
    "nothing": "",
}


@pytest.mark.parametrize("kind", [*FORGED])
@pytest.mark.parametrize("local", ["true", "false"])
async def test_a_forged_caller_shows_no_rows_of_others(call: Any, kind: str, local: str) -> None:
    become = BECOME.format(FORGED[kind], local)

    answer = await call("run_sql", 1, statements=[SEEN, f"with b as ({become}) {SEEN}", SEEN])
    within = await call("run_script", 1, script=f"{become}; savepoint s", then=SEEN)
    after = await call("run_sql", 2, statements=[SEEN])

    assert answer.json()[0] == [1]
    assert answer.json()[2] == [1]
    assert within.status_code == 500 or within.json() == []
    assert after.json() == [[2]]


@pytest.mark.parametrize("role", ["forge_worker", "forge", "postgres"])
async def test_an_injected_role_is_refused(call: Any, role: str) -> None:
    answer = await call(
        "run_sql",
        1,
        statements=[
            f"select set_config('role', '{role}', true)",
            f"select set_config('session_authorization', '{role}', false)",
            f"set session authorization {role}",
            SEEN,
            "select current_user::text",
        ],
    )

    *refused, seen, user = answer.json()
    assert all("refused: " in str(each) for each in refused)
    assert (seen, user) == ([1], ["forge_api"])


@pytest.mark.parametrize(
    "script",
    [
        "rollback; begin",
        "commit; begin",
        "rollback; begin; " + BECOME.format("*", "true"),
        "commit; " + BECOME.format("2", "false") + "; begin",
        "rollback; begin; reset forge.tenant_id",
        "rollback; discard all; begin",
    ],
)
async def test_leaving_the_transaction_of_a_mutation_hides_its_rows(call: Any, script: str) -> None:
    answer = await call("run_script", 1, script=script, then=SEEN)
    after = await call("run_sql", 2, statements=[SEEN])

    assert answer.status_code >= 500 or answer.json() == []
    assert after.json() == [[2]]


async def test_the_signing_key_and_other_callers_are_not_seen(call: Any) -> None:
    answer = await call(
        "run_sql",
        1,
        statements=[
            "select outer_pad::text from forge_signing_keys",
            "select query from pg_stat_activity where query like '%{\"tenant_id\"%'"
            " and pid <> pg_backend_pid()",
            "select current_setting('forge.tenant_id')",
        ],
    )

    key, others, own = answer.json()
    assert "permission denied" in key[0]
    assert others == []
    assert json.loads(own[0].split(".", 2)[2])["auth"]["name"] == "user of 1"


async def test_writes_carry_the_name_of_the_caller(call: Any, psql: Any) -> None:
    forged = [
        f"insert into forge_audit_events (event, actor, tenant_id) values ('x', 'ceo', {tenant})"
        for tenant in ("1", "2", "null")
    ] + [
        "insert into forge_jobs (job_type, queue, tenant_id, auth, input) select 'forge.cancel', "
        f"'forge', {tenant}, '{CEO}', jsonb_build_object('job_id', id) from forge_jobs"
        for tenant in ("1", "null")
    ]

    answer = await call("run_sql", 1, statements=forged)

    assert all("refused: " in str(each) for each in answer.json())
    assert await psql.fetchval("select count(*) from forge_audit_events") == 0
    assert await psql.fetchval("select count(*) from forge_jobs where queue = 'forge'") == 0


async def test_temporary_tables_of_one_caller_do_not_reach_the_next(call: Any, psql: Any) -> None:
    await call(
        "run_script",
        1,
        script="create temporary table forge_jobs (like public.forge_jobs including all)",
        then="select count(*) from pg_temp.forge_jobs",
    )

    ordered = await call("order", 2)
    stolen = await call("run_sql", 1, statements=["select input::text from pg_temp.forge_jobs"])

    found = await psql.fetchrow("select tenant_id from forge_jobs where id = $1", ordered.json())
    assert found["tenant_id"] == 2
    assert "does not exist" in stolen.json()[0][0]
