"""Reprocessing many dead letters over HTTP: dry run, canary, refusals."""

import json
from typing import Any
from uuid import UUID

import pytest

from forge import Forge
from tests.apps import Work
from tests.dead_letters.conftest import Flaky
from tests.dead_letters.letters import fill
from tests.http.admins import Admin, events
from tests.http.job_client import code, paths


async def test_dry_run_changes_nothing(psql: Any, operator: Admin) -> None:
    await fill(psql, 5)
    await fill(psql, 2, place="jobs:other")

    answer = await operator.post("reprocess/", {"job_type": "flaky", "dry_run": True})

    body = answer.json()
    assert (answer.status_code, body["dry_run"], body["job_id"]) == (200, True, None)
    assert (body["letters"], [group["letters"] for group in body["groups"]]) == (7, [5, 2])
    assert await psql.fetchval("select count(*) from forge_jobs") == 0
    assert await events(psql) == []


async def test_many_are_reprocessed_by_a_worker_after_a_canary(
    app: Forge, flaky: Flaky, work: Work, psql: Any, admin: Admin
) -> None:
    flaky.broken = False
    await fill(psql, 12, tenant_id=123)
    theirs = await fill(psql, 3, tenant_id=8)
    await work(app)

    body = {"job_type": "flaky", "rate": 1000, "canary": 2, "notes": "mended"}
    answer = await admin.post("reprocess/", body)
    found = answer.json()
    report = await app.handle(UUID(found["job_id"])).result(60)

    assert (answer.status_code, found["job_type"], found["letters"]) == (202, "forge.reprocess", 12)
    assert (report["reprocessed"], report["stopped"]) == (12, None)
    left = (await admin.get(status="pending_review")).json()
    assert left["total_count"] == 0
    untouched = await psql.fetch(
        "select dlq_id from forge_dead_letters where status = 'pending_review' order by 1"
    )
    assert [row["dlq_id"] for row in untouched] == theirs
    audited = await events(psql)
    assert audited[0] == ("job_dlq_bulk_reprocess_requested", "ann", "mended", 123)
    assert audited[-1] == ("job_dlq_bulk_reprocess_finished", "ann", "mended", 123)
    assert {actor for _, actor, *_ in audited} == {"ann"}


async def test_a_canary_that_fails_again_stops_the_rest(
    app: Forge, flaky: Flaky, work: Work, psql: Any, operator: Admin
) -> None:
    await fill(psql, 20)
    await work(app)

    body = (await operator.post("reprocess/", {"all": True, "rate": 1000})).json()
    report = await app.handle(UUID(body["job_id"])).result(60)

    assert report["stopped"] == "a canary failed again"
    assert report["reprocessed"] == 1


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "$"),
        ({"all": True, "rate": 0}, "$.rate"),
        ({"all": True, "rate": 1001}, "$.rate"),
        ({"all": True, "canary": 101}, "$.canary"),
        ({"all": True, "canary_timeout": "soon"}, "$"),
        ({"all": True, "max_failures": 0}, "$.max_failures"),
        ({"all": True, "priority": 7}, "$.priority"),
        ({"category": "mail"}, "$.category"),
        ({"everything": True}, "$.everything"),
    ],
    ids=json.dumps,
)
async def test_invalid_bulk_request_is_refused(
    psql: Any, operator: Admin, body: Any, path: str
) -> None:
    answer = await operator.post("reprocess/", body)

    assert paths(answer) == [path]
    assert await psql.fetchval("select count(*) from forge_jobs") == 0
    assert await events(psql) == []


async def test_bulk_request_without_a_filter_is_explained(operator: Admin) -> None:
    answer = await operator.post("reprocess/", {})

    assert answer.json()["errors"][0]["message"].startswith("set a filter such as job_type")


async def test_a_manager_reprocesses_many_for_no_other_tenant(psql: Any, admin: Admin) -> None:
    await fill(psql, 1, tenant_id=8)

    answer = await admin.post("reprocess/", {"tenant_id": 8})

    assert code(answer) == (403, "forbidden")
    assert await events(psql) == []


async def test_many_are_discarded_by_a_worker(
    app: Forge, work: Work, psql: Any, admin: Admin
) -> None:
    await fill(psql, 4, tenant_id=123)
    theirs = await fill(psql, 3, tenant_id=8)
    body = {"job_type": "flaky", "notes": "no longer needed"}

    planned = await admin.post("discard/", body | {"dry_run": True})
    before = await events(psql)
    answer = await admin.post("discard/", body)
    await work(app)
    report = await app.handle(UUID(answer.json()["job_id"])).result(60)

    assert (planned.status_code, planned.json()["letters"]) == (200, 4)
    assert (planned.json()["job_id"], before) == (None, [])
    assert (answer.status_code, answer.json()["job_type"]) == (202, "forge.discard")
    assert (report["done"], report["skipped"]) == (4, 0)
    assert await events(psql) == [
        ("job_dlq_bulk_discard_requested", "ann", "no longer needed", 123)
    ]
    untouched = await psql.fetch(
        "select dlq_id from forge_dead_letters where status = 'pending_review' order by 1"
    )
    assert [row["dlq_id"] for row in untouched] == theirs


@pytest.mark.parametrize("body", [{"all": True}, {"notes": "x"}, {"all": True, "notes": " "}])
async def test_bulk_discard_needs_a_filter_and_notes(
    psql: Any, operator: Admin, body: dict[str, Any]
) -> None:
    answer = await operator.post("discard/", body)

    assert paths(answer) == ["$"]
    assert await events(psql) == []
