"""Fairness between callers: limits on priorities and pending jobs."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from forge import Forge
from forge.core.job import Priority
from forge.http.jobs import pending_limit
from forge.store import jobs
from forge.store.connection.database import Database
from forge.store.migrate import index_waiting
from forge.store.statement import Statement, load
from tests.faults.kit.process import until
from tests.http.conftest import Headers, MakeServerApp, MakeToken

PATHS = ("dispatch", "dispatch_many")
Client = Callable[..., Awaitable[httpx.AsyncClient]]


def body(path: str, **options: Any) -> dict[str, Any]:
    return {"inputs": [{}]} | options if path == "dispatch_many" else {"args": {}} | options


@pytest.fixture
def typed(app: Forge) -> Forge:
    """An app with a type of priority high and one of priority normal."""

    @app.job(priority="high")
    async def urgent(ctx: Any, input: dict[str, Any]) -> None: ...

    @app.job
    async def plain(ctx: Any, input: dict[str, Any]) -> None: ...

    return app


def make_client(api: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://forge.test")


def limited(make_server_app: MakeServerApp, app: Forge, **server: Any) -> FastAPI:
    """Make the server of an app with other settings of [server]."""
    twin = app.clone()
    section = type(app.config.server).model_validate(server)
    twin.config = app.config.model_copy(update={"server": section})
    return make_server_app(twin)


@pytest.mark.parametrize("path", PATHS)
async def test_user_priority_is_capped_by_the_type(
    typed: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any, path: str
) -> None:
    async def status(kind: str, priority: object, headers: Headers) -> int:
        sent = body(path, priority=priority)
        answer = await http.post(f"/_api/jobs/{kind}/{path}", json=sent, headers=headers)
        if answer.status_code == 403:
            assert answer.json()["code"] == "priority_too_high"
            assert "role staff" in answer.json()["detail"]
        return answer.status_code

    user = token("user", tenant=7)
    assert await status("plain", "high", user) == 403
    assert await status("plain", 100, user) == 403
    assert await status("plain", "high", token("user", "manager", tenant=7)) == 403
    assert await status("plain", "high", token("user")) == 403
    assert await psql.fetchval("select count(*) from forge_jobs") == 0
    assert await status("plain", "normal", user) == 202
    assert await status("plain", "background", user) == 202
    assert await status("urgent", "high", user) == 202
    assert await status("urgent", "critical", user) == 403
    assert await status("plain", "critical", token("user", "staff", tenant=7)) == 202
    assert await status("plain", "critical", token("staff")) == 202


@pytest.mark.parametrize("path", PATHS)
async def test_a_time_in_the_past_does_not_put_a_users_job_first(
    typed: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any, path: str
) -> None:
    sent = body(path, scheduled_at="2001-01-01T00:00:00Z")

    for headers in (token("user", tenant=7), token("staff", tenant=7)):
        answer = await http.post(f"/_api/jobs/plain/{path}", json=sent, headers=headers)
        assert answer.status_code == 202, answer.text

    due = await psql.fetch(
        "select scheduled_at >= created_at as is_new from forge_jobs order by created_at, id"
    )
    assert [row["is_new"] for row in due] == [True, False]


@pytest.mark.parametrize("path", PATHS)
async def test_priorities_setting_allows_any_priority(
    typed: Forge, make_server_app: MakeServerApp, token: MakeToken, psql: Any, path: str
) -> None:
    async with make_client(limited(make_server_app, typed, priorities="any")) as client:
        sent = body(path, priority="critical")
        answer = await client.post(
            f"/_api/jobs/plain/{path}", json=sent, headers=token("user", tenant=7)
        )

    assert answer.status_code == 202
    assert await psql.fetchval("select priority from forge_jobs") == Priority.CRITICAL


@pytest.fixture
async def capped(
    typed: Forge, make_server_app: MakeServerApp, database: Database
) -> httpx.AsyncClient:
    """A client of a server on which a tenant may have ten waiting jobs."""
    assert await index_waiting(database) is not None
    return make_client(limited(make_server_app, typed, max_pending_per_tenant=10))


async def dispatched(
    client: httpx.AsyncClient, headers: Headers, count: int = 0, **options: Any
) -> httpx.Response:
    """Dispatch one job, or `count` jobs at once."""
    path = "dispatch_many" if count else "dispatch"
    sent = {"inputs": [{}] * count} if count else {"args": {}}
    return await client.post(f"/_api/jobs/plain/{path}", json=sent | options, headers=headers)


async def test_tenant_at_its_pending_limit_gets_a_429(
    capped: httpx.AsyncClient, token: MakeToken, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_limit, "FRESH", 0.0)
    user = token("user", tenant=7)
    for _ in range(3):
        assert (await dispatched(capped, user)).status_code == 202
    assert (await dispatched(capped, user, 6, delay="1h")).status_code == 202

    assert (await dispatched(capped, user, 2)).status_code == 429
    assert (await dispatched(capped, user, idempotency_key="one")).status_code == 202
    full = await dispatched(capped, user)

    assert (full.status_code, full.json()["code"]) == (429, "too_many")
    assert int(full.headers["retry-after"]) >= 1
    assert "max_pending_per_tenant" in full.json()["detail"]
    assert (await dispatched(capped, token("staff"), tenant_id=7)).status_code == 429
    # Others have room of their own, and jobs without a tenant have no limit.
    assert (await dispatched(capped, token("user", tenant=8), 10)).status_code == 202
    assert (await dispatched(capped, token("user"), 20)).status_code == 202
    # Jobs that wait no longer make room.
    await psql.execute(
        "delete from forge_jobs where id in (select id from forge_jobs where tenant_id = 7 limit 3)"
    )
    assert (await dispatched(capped, user, 3)).status_code == 202
    assert (await dispatched(capped, user)).status_code == 429


async def test_requests_that_come_together_never_exceed_the_limit(
    capped: httpx.AsyncClient, token: MakeToken, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_limit, "FRESH", 0.0)
    user = token("user", tenant=7)

    answers = await asyncio.gather(
        *(dispatched(capped, user) for _ in range(30)),
        *(dispatched(capped, user, 2) for _ in range(10)),
        *(dispatched(capped, user, idempotency_key=f"key {n}") for n in range(10)),
    )

    assert {answer.status_code for answer in answers} == {202, 429}
    assert 0 < await psql.fetchval("select count(*) from forge_jobs where tenant_id = 7") <= 10
    # What was held for jobs that were being written is free again.
    left = 10 - await psql.fetchval("select count(*) from forge_jobs where tenant_id = 7")
    if left:
        assert (await dispatched(capped, user, left)).status_code == 202
    assert (await dispatched(capped, user)).status_code == 429


async def test_pending_count_is_cached(
    capped: httpx.AsyncClient, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_limit, "FRESH", 3600.0)
    counted = []
    count = pending_limit.PendingLimit._count

    async def count_and_note(*given: Any) -> None:
        counted.append(given)
        await count(*given)

    monkeypatch.setattr(pending_limit.PendingLimit, "_count", count_and_note)
    user = token("user", tenant=7)
    assert (await dispatched(capped, user, 10)).status_code == 202

    for _ in range(5):
        assert (await dispatched(capped, user)).status_code == 429

    assert len(counted) == 1


async def test_refused_request_releases_its_reservation(
    capped: httpx.AsyncClient, token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_limit, "FRESH", 0.0)
    user = token("user", tenant=7)

    for _ in range(15):
        assert (await dispatched(capped, user, delay="1 fortnight")).status_code == 422
        assert (await dispatched(capped, user, priority="critical")).status_code == 403

    assert (await dispatched(capped, user, 10)).status_code == 202


async def test_missing_index_recommends_migrate(
    typed: Forge, make_server_app: MakeServerApp, token: MakeToken
) -> None:
    async with make_client(limited(make_server_app, typed, max_pending_per_tenant=10)) as client:
        answer = await dispatched(client, token("user", tenant=7))
        ready = await client.get("/readyz")

    assert answer.status_code == ready.status_code == 503
    assert "forge migrate" in answer.json()["detail"]


async def test_the_count_reads_the_index_of_waiting_jobs_alone(
    database: Database, psql: Any
) -> None:
    assert await index_waiting(database) is not None
    assert await index_waiting(database) is None
    await psql.execute(
        "insert into forge_jobs (job_type, tenant_id) select 'plain', n % 9 "
        "from generate_series(1, 2000) as n"
    )
    await psql.execute("analyze forge_jobs")
    statement = load("jobs/count_waiting_of_tenant")
    for parameter, value in (("$1", "7"), ("$2", "10")):
        statement = statement.replace(parameter, value)

    plan = await psql.fetchval(f"explain (analyze, format json) {statement.partition(';')[0]}")

    assert '"Index Name": "forge_jobs_tenant_waiting"' in plan
    assert re.search(r'"Rows Removed by Filter": [1-9]', plan) is None


async def test_an_index_whose_building_was_interrupted_is_built_again(
    database: Database, psql: Any
) -> None:
    await index_waiting(database)
    await psql.execute(
        "update pg_index set indisvalid = false "
        "where indexrelid = 'forge_jobs_tenant_waiting'::regclass"
    )

    assert await index_waiting(database) is not None

    assert await database.run(jobs.count_waiting(7, 10)) == 0


async def test_several_processes_build_the_index_together(database: Database, psql: Any) -> None:
    held = psql.transaction()
    await held.start()
    await psql.execute("insert into forge_jobs (job_type) values ('plain')")
    building = [asyncio.create_task(index_waiting(database)) for _ in range(3)]

    async def one_waits() -> bool:
        found = await database.run(Statement(load("tenant/is_waiting_indexed"), (), list))
        return [tuple(row) for row in found] == [(False, True)]

    await until(one_waits, 30, "one of them waits for the transaction, and the others for it")
    await held.commit()

    reports = await asyncio.gather(*building)
    assert sorted(reports, key=str) == [None, None, "the index for max_pending_per_tenant is built"]
    assert await database.run(jobs.count_waiting(7, 10)) == 0
