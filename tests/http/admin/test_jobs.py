"""The admin API for jobs: filters, pages, and counts with their precision."""

import asyncio
from typing import Any, get_args
from uuid import uuid4

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from forge import Forge, JobFailed, Retry, Transient, Worker
from forge.core.payload_rules import CATEGORIES, Category
from forge.jobs import counts as jobs_counts
from forge.store import queue_statistics
from tests.http.conftest import MakeServerApp, MakeToken
from tests.http.job_client import add_jobs, code, dispatched, paths

MANAGER = ("staff", "manager")
QUEUE = "/api/jobs/admin/queue/"
CORRELATION = "550e8400-e29b-41d4-a716-446655440000"
FILL = """insert into forge_jobs (job_type, category, tenant_id)
select 'type_' || n % 4, case when n % 2 = 0 then 'sync' end, n % 5
from generate_series(1, $1::int) as n"""


@pytest.fixture(autouse=True)
def _jobs(app: Forge) -> None:
    add_jobs(app)

    @app.job(category="ingestion", requires=["connection_id"])
    async def email_ingestion_fetch(ctx: Any, input: dict[str, Any]) -> None: ...


@pytest.fixture
def see(http: httpx.AsyncClient, token: MakeToken) -> Any:
    """Read the queue as a manager, of one tenant or of all."""

    async def see(tenant: int | None = None, **asked: Any) -> Any:
        headers = token(*MANAGER, tenant=tenant)
        answer = await http.get(QUEUE, params=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return see


def test_the_categories_are_those_of_the_rules() -> None:
    assert get_args(Category) == tuple(CATEGORIES)


async def test_list_uses_admin_field_names_and_omits_payloads(
    http: httpx.AsyncClient, token: MakeToken, see: Any
) -> None:
    job_id = await dispatched(
        http,
        token("user", tenant=123),
        "email_ingestion_fetch",
        args={"connection_id": 456},
        correlation_id=CORRELATION,
        idempotency_key="email_fetch_conn_456_msg_789",
    )

    page = await see()

    (job,) = page["jobs"]
    assert {
        "job_id": str(job_id),
        "category": "ingestion",
        "job_type": "email_ingestion_fetch",
        "status": "pending",
        "state": "queued",
        "priority": 50,
        "tenant_id": 123,
        "idempotency_key": "email_fetch_conn_456_msg_789",
        "correlation_id": CORRELATION,
        "payload_version": "1.0",
        "error_class": None,
        "error_message": None,
        "attempt_count": 0,
        "max_attempts": 5,
    }.items() <= job.items()
    assert not {"payload", "input", "output"} & job.keys()
    assert page["total_count"] == 1
    assert (page["total_count_precision"], page["next_cursor"]) == ("exact", None)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, 5),
        ({"status": "pending"}, 4),
        ({"status": "cancelled"}, 1),
        ({"job_type": "send_mail"}, 3),
        ({"type": "send_mail"}, 3),
        ({"type": "send_mail", "job_type": "send_mail", "status": "cancelled"}, 1),
        ({"priority": "high"}, 2),
        ({"priority": "0"}, 1),
        ({"category": "ingestion"}, 1),
        ({"category": "sync"}, 0),
        ({"correlation_id": CORRELATION}, 2),
        ({"correlation_id": CORRELATION, "category": "ingestion"}, 1),
        ({"queue": "mail"}, 3),
        ({"queue": "nowhere"}, 0),
        ({"error_class": "transient"}, 1),
        ({"error_class": "rate_limited"}, 0),
        ({"idempotency_key": "k"}, 1),
        ({"tenant_id": 3}, 1),
        ({"tenant_id": 3, "status": "cancelled"}, 0),
        ({"tenant_id": 4}, 0),
    ],
    ids=str,
)
async def test_filters_narrow_both_the_list_and_the_count(
    http: httpx.AsyncClient, token: MakeToken, see: Any, psql: Any, asked: Any, found: int
) -> None:
    user = token("user")
    await dispatched(http, user, "export_users", args={"format": "csv"})
    await dispatched(http, user, correlation_id=CORRELATION)
    await dispatched(http, user, priority="background")
    over = await dispatched(http, user)
    await psql.execute(
        "update forge_jobs set status = 'cancelled', error_class = 'transient' where id = $1", over
    )
    await dispatched(
        http,
        user,
        "email_ingestion_fetch",
        args={"connection_id": 1, "tenant_id": 3},
        correlation_id=CORRELATION,
        idempotency_key="k",
    )

    page = await see(**asked)

    assert (len(page["jobs"]), page["total_count"]) == (found, found)


async def test_manager_cannot_name_another_tenant(
    http: httpx.AsyncClient, token: MakeToken, see: Any
) -> None:
    own = await see(tenant=3, tenant_id=3)
    answer = await http.get(QUEUE, params={"tenant_id": 4}, headers=token(*MANAGER, tenant=3))

    assert own["total_count"] == 0
    assert answer.status_code == 403


async def test_recovered_jobs_have_no_error_class(
    app: Forge, http: httpx.AsyncClient, token: MakeToken
) -> None:
    @app.job(retry=Retry(max_attempts=2, max_backoff="10ms"))
    async def flaky(ctx: Any) -> None:
        if ctx.attempt == 1:
            raise Transient("not yet")

    @app.job(max_attempts=1)
    async def broken(ctx: Any) -> None:
        raise Transient("never")

    worker = Worker(app)
    running = asyncio.create_task(worker.run())
    await (await flaky.dispatch()).result(20)
    with pytest.raises(JobFailed):
        await (await broken.dispatch()).result(20)
    worker.drain()
    await running

    answer = await http.get(f"{QUEUE}statistics/", headers=token(*MANAGER))

    assert answer.json()["by_status"] == {"completed": 1, "dead_letter": 1}
    assert answer.json()["by_error_class"] == {"none": 1, "transient": 1}


async def test_pages_and_total_count(http: httpx.AsyncClient, token: MakeToken, see: Any) -> None:
    made = [str(await dispatched(http, token("user"))) for _ in range(5)]

    first = await see(limit=3)
    rest = await see(limit=3, cursor=first["next_cursor"])

    assert [job["job_id"] for job in first["jobs"] + rest["jobs"]] == sorted(made, reverse=True)
    assert (first["total_count"], rest["total_count"]) == (5, 5)
    assert rest["next_cursor"] is None


@pytest.mark.parametrize("path", [QUEUE, QUEUE[:-1], f"{QUEUE}statistics/", f"{QUEUE}statistics"])
async def test_trailing_slash_is_optional(
    http: httpx.AsyncClient, token: MakeToken, path: str
) -> None:
    answer = await http.get(path, headers=token(*MANAGER))

    assert (answer.status_code, answer.json()["total_count"]) == (200, 0)


@pytest.mark.parametrize("path", ["queue", "queue/statistics/", "dlq", "dlq/groups"])
async def test_it_can_be_mounted_under_a_prefix(
    app: Forge, make_server_app: MakeServerApp, token: MakeToken, path: str
) -> None:
    host = Starlette(routes=[Mount("/forge", make_server_app(app))])
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(host), base_url="http://forge.test"
    ) as client:
        answer = await client.get(f"/forge/api/jobs/admin/{path}", headers=token(*MANAGER))

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("asked", ["status=x", "category=x", "priority=7", "correlation_id=x"])
async def test_invalid_parameters_are_refused(
    http: httpx.AsyncClient, token: MakeToken, asked: str
) -> None:
    answer = await http.get(f"{QUEUE}?{asked}", headers=token(*MANAGER))

    assert paths(answer) == [f"query.{asked.partition('=')[0]}"]


async def test_conflicting_type_parameters_are_refused(
    http: httpx.AsyncClient, token: MakeToken
) -> None:
    answer = await http.get(f"{QUEUE}?type=a&job_type=b", headers=token(*MANAGER))

    assert paths(answer) == ["query.type"]


@pytest.mark.parametrize("path", [QUEUE, f"{QUEUE}statistics/"])
async def test_admin_api_requires_staff_and_manager(
    http: httpx.AsyncClient, token: MakeToken, path: str
) -> None:
    assert code(await http.get(path)) == (401, "unauthenticated")
    for roles in (("user",), ("staff",), ("manager",), ("user", "manager")):
        assert code(await http.get(path, headers=token(*roles))) == (403, "forbidden")


async def test_statistics_count_by_status_category_type_and_error_class(
    http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    await psql.execute(FILL, 1000)
    await psql.execute("update forge_jobs set status = 'cancelled' where job_type = 'type_0'")
    path = f"{QUEUE}statistics/"

    all_jobs = (await http.get(path, headers=token(*MANAGER))).json()
    of_one = (await http.get(path, headers=token(*MANAGER, tenant=3))).json()
    of_nobody = (await http.get(path, headers=token(*MANAGER, tenant=77))).json()

    assert all_jobs == {
        "total_count": 1000,
        "by_status": {"cancelled": 250, "pending": 750},
        "by_category": {"none": 500, "sync": 500},
        "by_type": {f"type_{n}": 250 for n in range(4)},
        "by_error_class": {"none": 1000},
        "precision": "exact",
    }
    assert (of_one["total_count"], of_one["by_category"]) == (200, {"none": 100, "sync": 100})
    assert of_nobody["total_count"] == 0


async def test_many_jobs_are_estimated_for_operators_and_bounded_for_tenants(
    see: Any, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (queue_statistics, jobs_counts):
        monkeypatch.setattr(module, "MAX_COUNTED", 500)
    await psql.execute(FILL, 5000)
    await psql.execute("vacuum analyze forge_jobs")

    whole = await see()
    by_type = await see(type="type_1")
    by_both = await see(type="type_1", status="pending")
    of_one = await see(tenant=3)
    of_few = await see(tenant=77)

    assert whole["total_count"] == pytest.approx(5000, rel=0.05)
    assert by_type["total_count"] == pytest.approx(1250, rel=0.1)
    assert (whole["total_count_precision"], by_type["total_count_precision"]) == (
        "estimate",
        "estimate",
    )
    assert 100 < by_both["total_count"] <= 500
    assert by_both["total_count_precision"] == "at_least"
    assert (of_one["total_count"], of_one["total_count_precision"]) == (501, "at_least")
    assert (of_few["total_count"], of_few["total_count_precision"]) == (0, "exact")


async def test_count_of_an_unanalysed_table_is_at_least(
    see: Any, http: httpx.AsyncClient, token: MakeToken, psql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (queue_statistics, jobs_counts):
        monkeypatch.setattr(module, "MAX_COUNTED", 500)
    await psql.execute("alter table forge_jobs set (autovacuum_enabled = off)")
    await psql.execute(FILL, 2000)

    page = await see()
    counts = (await http.get(f"{QUEUE}statistics/", headers=token(*MANAGER))).json()

    assert page["total_count"] >= 501
    assert counts["total_count"] >= 501


async def test_list_omits_jobs_of_other_tenants(
    http: httpx.AsyncClient, token: MakeToken, see: Any
) -> None:
    for tenant in (7, 8, None):
        await dispatched(http, token("user", tenant=tenant), correlation_id=str(uuid4()))

    assert [job["tenant_id"] for job in (await see(tenant=7))["jobs"]] == [7]
    assert (await see(tenant=7))["total_count"] == 1
    assert {job["tenant_id"] for job in (await see())["jobs"]} == {7, 8, None}
