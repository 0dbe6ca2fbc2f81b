"""The server's metrics: requests, statements, the queue, and the readiness of workers."""

import asyncio
from typing import Any

import httpx
import pytest

from forge import Forge, JobContext
from forge.http import create_app
from forge.http.operations import canaries
from forge.store.connection.database import Database
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.http.conftest import AUTH, MakeServerApp, MakeToken
from tests.telemetry.exposed import scraped
from tests.worker.claiming import stop_claiming


async def test_requests_are_counted_by_the_template_of_their_route(
    http: httpx.AsyncClient, token: MakeToken, app: Forge
) -> None:
    @app.job
    async def greet(ctx: JobContext, input: dict[str, Any]) -> None: ...

    made = await http.post("/_api/jobs/greet/dispatch", json={"args": {}}, headers=token("user"))
    job_id = made.json()["job_id"]
    for _ in range(2):
        await http.get(f"/_api/jobs/{job_id}", headers=token("user"))
    await http.get("/nowhere/at/all")
    await http.get("/nowhere/else")

    samples = await scraped(http, token("staff"))

    dispatched = ("POST", "/_api/jobs/{job_type}/dispatch", "202")
    assert samples["http_requests_total", *dispatched] == 1
    assert samples["http_requests_total", "GET", "/_api/jobs/{job_id}", "200"] == 2
    assert samples["http_requests_total", "GET", "(none)", "404"] == 2
    assert samples["http_request_duration_seconds_count", *dispatched] == 1


async def test_statements_are_measured_by_verb_and_table(
    http: httpx.AsyncClient, token: MakeToken, app: Forge
) -> None:
    await http.get("/_api/workers", headers=token("staff"))

    samples = await scraped(http, token("staff"))

    assert samples["db_query_duration_seconds_count", "list", "forge_workers"] == 1


async def test_an_app_that_was_open_before_it_is_served_is_measured(
    app: Forge, token: MakeToken
) -> None:
    app.config = app.config.model_copy(update={"auth": AUTH})
    await (await app.session()).database()
    transport = httpx.ASGITransport(create_app(app))

    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as client:
        await client.get("/_api/workers", headers=token("staff"))
        samples = await scraped(client, token("staff"))

    assert samples["db_query_duration_seconds_count", "list", "forge_workers"] == 1


async def test_statements_that_fail_are_counted_with_their_code(
    http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    await psql.execute("alter table forge_workers rename to gone")

    await http.get("/_api/workers", headers=token("staff"))

    samples = await scraped(http, token("staff"))
    assert samples["db_query_error_total", "42P01", "list", "forge_workers"] >= 1


async def test_the_metrics_are_for_staff_and_for_callers_on_the_same_machine(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    assert (await http.get("/metrics")).status_code == 401
    assert (await http.get("/metrics", headers=token("user"))).status_code == 403
    assert (await http.get("/metrics", headers=token("staff"))).status_code == 200
    local = {"host": "localhost"}
    assert (await http.get("/metrics", headers=local)).status_code == 200


async def test_metrics_are_shown_while_the_database_is_away(
    app: Forge, make_server_app: MakeServerApp, token: MakeToken
) -> None:
    app.database_url = "postgresql://forge@127.0.0.1:1/nothing"
    api = make_server_app(app)
    api.state.forge.database_url = app.database_url
    transport = httpx.ASGITransport(api)

    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as client:
        await client.get("/livez")
        samples = await scraped(client, token("staff"))

    assert samples["http_requests_total", "GET", "/livez", "200"] == 1


async def test_a_consuming_worker_group_is_ready_and_its_canaries_are_removed(
    app: Forge,
    http: httpx.AsyncClient,
    token: MakeToken,
    work: Work,
    database: Database,
    psql: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(canaries, "REUSE_FOR", 0.0)
    await work(app)

    for _ in range(3):
        answer = await http.get("/readyz?deep=1", headers=token("staff"))

    (crew,) = answer.json()["crews"]
    assert (crew["crew"], crew["state"], crew["workers"]) == ("any", "consumes", 1)
    assert await psql.fetchval("select count(*) from forge_jobs") == 1
    samples = await scraped(http, token("staff"))
    assert samples["forge_canary_latency_seconds", "any"] > 0
    assert samples["forge_canary_age_seconds", "any"] < 30
    assert samples["forge_workers_alive", "any"] == 1


async def test_times_of_a_canary_do_not_depend_on_when_the_server_looks(
    app: Forge,
    http: httpx.AsyncClient,
    token: MakeToken,
    work: Work,
    psql: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(canaries, "REUSE_FOR", 0.0)
    monkeypatch.setattr(canaries, "CANARY_TIMEOUT", 0.0)
    await work(app)
    assert (await http.get("/readyz?deep=1")).status_code == 503

    await until_canary_ended_two_seconds_ago(psql)
    monkeypatch.setattr(canaries, "CANARY_TIMEOUT", 20.0)
    answer = await http.get("/readyz?deep=1", headers=token("staff"))

    took = await psql.fetchval(
        "select extract(epoch from completed_at - created_at)::float8 from forge_jobs"
    )
    (crew,) = answer.json()["crews"]
    assert (crew["state"], crew["latency_seconds"]) == ("consumes", took)
    samples = await scraped(http, token("staff"))
    assert samples["forge_canary_latency_seconds", "any"] == took
    assert samples["forge_canary_age_seconds", "any"] >= 2


async def test_a_canary_of_an_earlier_check_does_not_count(
    app: Forge, http: httpx.AsyncClient, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canaries, "REUSE_FOR", 0.0)
    monkeypatch.setattr(canaries, "CANARY_TIMEOUT", 0.0)
    worker = await work(app)
    await http.get("/readyz?deep=1")
    await until_canary_ended_two_seconds_ago(psql)

    await stop_claiming(worker)
    monkeypatch.setattr(canaries, "CANARY_TIMEOUT", 1.0)

    assert (await http.get("/readyz?deep=1")).status_code == 503


async def until_canary_ended_two_seconds_ago(psql: Any) -> None:
    async def is_over() -> bool:
        ended = "select completed_at < clock_timestamp() - interval '2 seconds' from forge_jobs"
        return bool(await psql.fetchval(ended))

    await until(is_over, 30, "the canary ended two seconds ago")


async def test_without_workers_nothing_is_consumed(http: httpx.AsyncClient) -> None:
    answer = await http.get("/readyz?deep=1")

    assert answer.status_code == 503
    assert "no worker is alive" in answer.json()["detail"]


async def test_each_worker_group_has_its_own_canary(
    make_app: MakeApp,
    app: Forge,
    http: httpx.AsyncClient,
    token: MakeToken,
    work: Work,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(canaries, "CANARY_TIMEOUT", 0.3)
    monkeypatch.setattr(canaries, "REUSE_FOR", 0.0)
    await work(app)
    stuck = await work(make_app(capabilities=["gpu", "media"]))
    await stop_claiming(stuck)

    answer = await http.get("/readyz?deep=1", headers=token("staff"))
    asked_by_anybody = await http.get("/readyz?deep=1")

    assert answer.status_code == asked_by_anybody.status_code == 503
    assert "1 of 2 worker groups consume no jobs: gpu,media" in answer.json()["detail"]
    assert "gpu" not in asked_by_anybody.text


async def test_the_canary_of_a_silent_worker_group_is_not_sent_twice(
    app: Forge, http: httpx.AsyncClient, work: Work, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canaries, "CANARY_TIMEOUT", 0.1)
    monkeypatch.setattr(canaries, "REUSE_FOR", 0.0)
    worker = await work(app)
    await stop_claiming(worker)

    for _ in range(3):
        assert (await http.get("/readyz?deep=1")).status_code == 503

    assert await psql.fetchval("select count(*) from forge_jobs") == 1


@pytest.mark.parametrize(
    "end", ["delete from forge_jobs", "update forge_jobs set status = 'cancelled'"]
)
async def test_a_deleted_canary_is_sent_again(
    app: Forge,
    http: httpx.AsyncClient,
    work: Work,
    psql: Any,
    monkeypatch: pytest.MonkeyPatch,
    end: str,
) -> None:
    monkeypatch.setattr(canaries, "REUSE_FOR", 0.0)
    worker = await work(app)
    await stop_claiming(worker)
    asked = asyncio.create_task(http.get("/readyz?deep=1"))

    async def is_sent() -> bool:
        return bool(await psql.fetchval("select count(*) from forge_jobs") == 1)

    await until(is_sent, 10, "the canary is dispatched")
    first = await psql.fetchval("select id from forge_jobs")
    await psql.execute(end)

    answer = await asked
    monkeypatch.setattr(canaries, "CANARY_TIMEOUT", 0.1)
    again = await http.get("/readyz?deep=1")

    assert answer.status_code == again.status_code == 503
    assert "1 of 1 worker groups consume no jobs" in answer.json()["detail"]
    waiting = await psql.fetch("select id from forge_jobs where status = 'pending'")
    assert len(waiting) == 1
    assert waiting[0]["id"] != first


async def test_a_worker_group_without_free_slots_consumes_its_canary(
    make_app: MakeApp,
    make_server_app: MakeServerApp,
    token: MakeToken,
    work: Work,
    psql: Any,
) -> None:
    app = make_app(max_concurrent=1)
    is_over = asyncio.Event()

    @app.job
    async def long(ctx: JobContext) -> None:
        await is_over.wait()

    await work(app)
    await app.dispatch(long)

    async def is_known_to_run() -> bool:
        return await psql.fetchval("select sum(running) from forge_workers") == 1

    await until(is_known_to_run, 10, "the worker says that it is full")
    transport = httpx.ASGITransport(make_server_app(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://forge.test") as client:
        answer = await client.get("/readyz?deep=1", headers=token("staff"))

    assert answer.status_code == 200, answer.text
    assert [crew["state"] for crew in answer.json()["crews"]] == ["consumes"]
    is_over.set()
