"""Bulk actions over HTTP: dry run, tenants, refusals, and the audit."""

import json
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from forge import Forge
from tests.apps import Work, waiting
from tests.http.admins import MANAGER, events
from tests.http.conftest import MakeToken
from tests.http.job_client import code, paths

MATCHING = {"type": "waits"}


async def bulk(http: httpx.AsyncClient, headers: dict[str, str], **body: Any) -> httpx.Response:
    sent = {"action": "cancel", "reason": "a test"} | body
    return await http.post("/_api/jobs/bulk", json=sent, headers=headers)


async def test_a_dry_run_counts_and_shows_some_and_changes_nothing(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    made = [await waiting(app, tenant_id=7) for _ in range(12)]
    await waiting(app, tenant_id=8)

    answer = await bulk(http, token(*MANAGER, tenant=7), filter=MATCHING, dry_run=True)

    body = answer.json()
    assert (answer.status_code, body["count"], body["precision"]) == (200, 12, "exact")
    newest = sorted((str(handle.id) for handle in made), reverse=True)
    assert [job["id"] for job in body["sample"]] == newest[:10]
    assert "input" not in body["sample"][0]
    assert set(body) == {"count", "precision", "sample"}
    assert await events(psql) == []
    assert await psql.fetchval("select count(*) from forge_jobs") == 13


async def test_a_manager_acts_within_the_tenant_and_leaves_one_event(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work, psql: Any
) -> None:
    mine = [await waiting(app, tenant_id=7) for _ in range(3)]
    theirs = [await waiting(app, tenant_id=8), await waiting(app)]
    manager = token(*MANAGER, tenant=7, name="ada")
    await work(app)

    answer = await bulk(http, manager, all=True, rate=1000)
    body = answer.json()
    assert (answer.status_code, body["count"], body["precision"]) == (202, 3, "exact")
    assert set(body) == {"job_id", "count", "precision"}
    report = await app.handle(UUID(body["job_id"])).result(timeout=30)
    assert (report["done"], report["skipped"]) == (3, 0)
    assert {(await handle.get()).status for handle in mine} == {"cancelled"}
    assert {(await handle.get()).status for handle in theirs} == {"pending"}
    ids = [str(handle.id) for handle in (*mine, *theirs)]
    again = await bulk(http, manager, action="rerun", ids=ids, queue="slow")
    assert (again.status_code, again.json()["count"]) == (202, 3)
    await app.handle(UUID(again.json()["job_id"])).result(timeout=30)
    rows = await psql.fetch(
        "select retry_of, queue, auth from forge_jobs where retry_of is not null"
    )
    assert {row["queue"] for row in rows} == {"slow"}
    # The handler sees who asked for it.
    assert {json.loads(row["auth"])["name"] for row in rows} == {"ada"}
    assert await events(psql) == [("job_bulk_requested", "ada", "a test", 7)] * 2


async def test_an_operator_names_a_tenant_in_the_filter(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, work: Work
) -> None:
    handles = {tenant: await waiting(app, tenant_id=tenant) for tenant in (7, 8)}
    await work(app)

    answer = await bulk(http, token(*MANAGER), filter={"tenant_id": 7})

    await app.handle(UUID(answer.json()["job_id"])).result(timeout=30)
    assert (await handles[7].get()).status == "cancelled"
    assert (await handles[8].get()).status == "pending"
    another = await bulk(http, token(*MANAGER, tenant=8), filter={"tenant_id": 7})
    assert code(another) == (403, "forbidden")


async def test_only_managers_act_in_bulk(http: httpx.AsyncClient, token: MakeToken) -> None:
    for roles in (("user",), ("staff",), ("manager",), ("viewer", *MANAGER)):
        assert code(await bulk(http, token(*roles, tenant=7), all=True)) == (403, "forbidden")


async def test_a_filter_in_json_has_the_conditions_of_a_list(
    app: Forge, http: httpx.AsyncClient, token: MakeToken, psql: Any
) -> None:
    handle = await waiting(app, tags=["a"], priority="low", idempotency_key="k")
    manager = token(*MANAGER)
    content = {"to": {"n": 42, "is_new": True}, "text": "a template"}
    await psql.execute("update forge_jobs set input = $1", json.dumps(content))
    job = await handle.get()
    written = job.created_at.isoformat()
    for matches, condition in (
        (1, {"status": ["pending", "running"]}),
        (1, {"status": "pending"}),
        (0, {"status": ["running"]}),
        (1, {"state": "queued", "tag": "a"}),
        (1, {"priority": "low", "queue": "default"}),
        (0, {"priority": 100}),
        (1, {"since": written}),
        (0, {"until": written}),
        (1, {"idempotency_key": "k"}),
        (0, {"parent_id": str(uuid4())}),
        (0, {"correlation_id": str(uuid4())}),
        (0, {"retry_of": str(uuid4())}),
        (0, {"worker_id": str(uuid4())}),
        (0, {"category": "sync"}),
        (0, {"error_class": "transient"}),
        (1, {"q": "template"}),
        (0, {"q": "nobody wrote this"}),
        (1, {"input": {"to.n": 42, "to.is_new": True}, "queue": "default"}),
        (0, {"input": {"to.n": "43"}}),
    ):
        answer = await bulk(http, manager, filter=condition, dry_run=True)
        assert (answer.status_code, answer.json()["count"]) == (200, matches), condition


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, None),
        ({"all": True, "filter": MATCHING}, None),
        ({"all": True, "ids": [str(UUID(int=1))]}, None),
        ({"filter": {}}, None),
        ({"filter": {"status": "completed"}}, None),
        ({"all": True, "queue": "x"}, None),
        ({"all": True, "action": "stop"}, "$.action"),
        ({"all": True, "rate": 0}, "$.rate"),
        ({"all": True, "rate": 1e6}, "$.rate"),
        ({"all": True, "reason": ""}, "$.reason"),
        ({"all": True, "reason": None}, "$.reason"),
        ({"ids": []}, "$.ids"),
        ({"ids": [str(UUID(int=n)) for n in range(5001)]}, "$.ids"),
        ({"ids": ["x"]}, "$.ids[0]"),
        ({"filter": {"typ": "x"}}, "$.filter.typ"),
        ({"filter": {"since": "soon"}}, "$.filter.since"),
        ({"filter": {"input.a": 1}}, "$.filter.input.a"),
        ({"filter": {"q": ""}}, "$.filter.q"),
        ({"filter": {"input": {"": 1}}}, None),
        ({"filter": {"input": {"a": []}}}, None),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
async def test_what_is_invalid_is_refused(
    http: httpx.AsyncClient, token: MakeToken, psql: Any, body: dict[str, Any], path: str | None
) -> None:
    answer = await bulk(http, token(*MANAGER), **body)

    assert code(answer) == (422, "invalid"), answer.text
    if path is not None:
        assert paths(answer) == [path]
    assert await psql.fetchval("select count(*) from forge_jobs") == 0
    assert await events(psql) == []
