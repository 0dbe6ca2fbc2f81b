"""Dead letters over HTTP, as "Workers and Queues" prints them."""

import asyncio
import json
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from forge import Forge
from forge.http.dead_letters.shapes import DeadLetterDetail
from tests.dead_letters.conftest import Bury, Flaky
from tests.dead_letters.letters import fill
from tests.faults.kit.process import until
from tests.http.admins import DLQ, Admin, events
from tests.http.conftest import MakeToken
from tests.http.job_client import code, paths
from tests.jobs.payload_rules.ways import PAYLOAD

# The fields of an item, in the order in which the seed prints them.
PRINTED = [
    "dlq_id",
    "category",
    "job_type",
    "status",
    "idempotency_key",
    "correlation_id",
    "error_class",
    "error_message",
    "attempt_count",
    "original_created_at",
    "created_at",
]


async def test_the_shape_of_a_dead_letter_is_the_row(psql: Any) -> None:
    columns = await psql.fetch(
        "select column_name from information_schema.columns where table_name = 'forge_dead_letters'"
    )

    known = {row["column_name"] for row in columns} | {"undecodable"}
    assert set(DeadLetterDetail.model_fields) <= known


async def test_dlq_items_viewable_admin_gated(
    http: httpx.AsyncClient, token: MakeToken, bury: Bury, admin: Admin
) -> None:
    letter = await bury(PAYLOAD, type="fetch")

    page = (await admin.get()).json()

    (item,) = page["dlq_items"]
    assert list(item)[: len(PRINTED)] == PRINTED
    assert {name: item[name] for name in PRINTED[:9]} == {
        "dlq_id": letter.dlq_id,
        "category": "ingestion",
        "job_type": "fetch",
        "status": "pending_review",
        "idempotency_key": "email_fetch_conn_456_msg_789",
        "correlation_id": "550e8400-e29b-41d4-a716-446655440000",
        "error_class": "non_retryable",
        "error_message": "no luck with None",
        "attempt_count": 1,
    }
    assert item["created_at"].endswith("Z")
    assert datetime.fromisoformat(item["original_created_at"]) == letter.original_created_at
    assert (page["total_count"], page["next_cursor"]) == (1, None)
    assert not {"payload", "edited_payload", "attempts"} & item.keys()
    assert code(await http.get(DLQ)) == (401, "unauthenticated")
    for roles in (("user",), ("staff",), ("manager",), ("user", "manager")):
        refused = await http.get(DLQ, headers=token(*roles, tenant=123))
        assert code(refused) == (403, "forbidden")


async def test_one_is_shown_with_its_payload_and_every_attempt(bury: Bury, admin: Admin) -> None:
    letter = await bury(PAYLOAD, type="fetch")

    shown = (await admin.get(f"{letter.dlq_id}/")).json()

    assert shown["payload"] == PAYLOAD
    (attempt,) = shown["attempts"]
    assert (attempt["attempt"], attempt["error"]) == (1, "no luck with None")
    assert (shown["payload_version"], shown["crashes"], shown["edited_payload"]) == ("1.0", 0, None)
    assert shown["place"] == "tests.dead_letters.conftest:Flaky.run"


async def test_dlq_items_reprocessable(
    app: Forge, bury: Bury, flaky: Flaky, admin: Admin, psql: Any
) -> None:
    letter = await bury(PAYLOAD, type="fetch")
    flaky.broken = False
    notes = "Fixed validation issue in source data, safe to reprocess"

    answer = await admin.post(f"{letter.dlq_id}/reprocess/", {"notes": notes})

    content = answer.json()
    assert answer.status_code == 200
    assert list(content) == ["message", "dlq_id", "new_job_id", "new_idempotency_key"]
    assert content["message"] == "DLQ item reprocessed successfully"
    assert content["dlq_id"] == letter.dlq_id
    key, _, moment = content["new_idempotency_key"].rpartition("_retry_")
    assert (key, float(moment) > 1_735_557_600) == (PAYLOAD["idempotency_key"], True)
    done = await app.handle(UUID(content["new_job_id"])).result(20)
    assert done["connection_id"] == 456
    shown = (await admin.get(f"{letter.dlq_id}")).json()
    assert (shown["status"], shown["reviewed_by"], shown["notes"]) == ("reprocessed", "ann", notes)
    assert shown["new_job_id"] == content["new_job_id"]


async def test_reprocessing_preserves_original_payload(
    app: Forge, bury: Bury, flaky: Flaky, admin: Admin
) -> None:
    letter = await bury(PAYLOAD, type="fetch")
    flaky.broken = False
    edited = PAYLOAD | {"connection_id": 7}

    content = (await admin.post(f"{letter.dlq_id}/reprocess/", {"payload": edited})).json()

    shown = (await admin.get(f"{letter.dlq_id}/")).json()
    assert shown["payload"] == PAYLOAD
    assert shown["edited_payload"]["connection_id"] == 7
    assert (await app.handle(UUID(content["new_job_id"])).result(20))["connection_id"] == 7


async def test_reprocessing_auditable(bury: Bury, admin: Admin, psql: Any) -> None:
    letter = await bury(PAYLOAD, type="fetch")

    await admin.post(f"{letter.dlq_id}/reprocess/", {"notes": "fixed"})

    requested, success = await psql.fetch(
        "select *, xmin::text::bigint as transaction from forge_audit_events order by id"
    )
    assert requested["event"] == "job_dlq_reprocess_requested"
    assert success["event"] == "job_dlq_reprocess_success"
    assert requested["transaction"] < success["transaction"]
    for row in (requested, success):
        assert (row["actor"], row["tenant_id"], row["notes"]) == ("ann", 123, "fixed")
    # Times of one transaction are one time; a worker may have rewritten the row by now.
    made_at = await psql.fetchval("select created_at from forge_jobs where retry_of is not null")
    assert made_at == success["created_at"]


async def test_audit_event_is_committed_before_reprocessing(
    bury: Bury, admin: Admin, psql: Any
) -> None:
    letter = await bury(PAYLOAD, type="fetch")
    async with psql.transaction():
        await psql.fetch("select from forge_dead_letters for update")
        asked = asyncio.create_task(admin.post(f"{letter.dlq_id}/reprocess/", {"notes": "fixed"}))

        await until(lambda: _is_told(psql), 20, "the request stands in the audit")
        assert await events(psql) == [("job_dlq_reprocess_requested", "ann", "fixed", 123)]
        assert not asked.done()

    assert (await asked).status_code == 200


async def _is_told(psql: Any) -> bool:
    return bool(await psql.fetchval("select count(*) from forge_audit_events"))


async def test_two_requests_at_the_same_moment_make_one_job_and_one_conflict(
    bury: Bury, admin: Admin, psql: Any
) -> None:
    letter = await bury(PAYLOAD, type="fetch")

    answers = await asyncio.gather(
        *(admin.post(f"{letter.dlq_id}/reprocess/", {"notes": str(n)}) for n in range(6))
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert code(refused) == (409, "conflict")
    assert "reprocessed by ann" in refused.json()["detail"]
    assert await psql.fetchval("select count(*) from forge_jobs where retry_of is not null") == 1
    content = [event for event, *_ in await events(psql)]
    assert content.count("job_dlq_reprocess_success") == 1
    assert content.count("job_dlq_reprocess_failed") == 5


async def test_invalid_edited_payload_lists_the_path_of_each_fault(
    bury: Bury, admin: Admin, psql: Any
) -> None:
    letter = await bury(PAYLOAD, type="fetch")
    bad = {"external_message_id": "msg", "nested": {"password": "hunter2"}}

    answer = await admin.post(f"{letter.dlq_id}/reprocess/", {"payload": bad})

    assert set(paths(answer)) == {"$.payload.connection_id", "$.payload.nested.password"}
    assert "hunter2" not in answer.text
    assert (await admin.get(f"{letter.dlq_id}/")).json()["status"] == "pending_review"
    assert "hunter2" not in str(await psql.fetch("select * from forge_audit_events"))
    assert await psql.fetchval("select count(*) from forge_jobs") == 1


async def test_discard_closes_the_review_with_notes(bury: Bury, admin: Admin, psql: Any) -> None:
    letter = await bury(PAYLOAD, type="fetch")

    answer = await admin.post(f"{letter.dlq_id}/discard/", {"notes": "the mailbox is gone"})

    assert answer.json() == {"message": "DLQ item discarded", "dlq_id": letter.dlq_id}
    shown = (await admin.get(f"{letter.dlq_id}/")).json()
    assert (shown["status"], shown["reviewed_by"]) == ("discarded", "ann")
    assert await events(psql) == [("job_dlq_discarded", "ann", "the mailbox is gone", 123)]
    again = await admin.post(f"{letter.dlq_id}/reprocess/", {"notes": "after all"})
    assert code(again) == (409, "conflict")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (None, "$"),
        ({}, "$.notes"),
        ({"notes": None}, "$.notes"),
        ({"notes": ""}, "$.notes"),
        ({"notes": " \n"}, "$.notes"),
        ({"notes": "a\u0000b"}, "$.notes"),
        ({"notes": "x" * 10_001}, "$.notes"),
        ({"notes": "x", "note": "y"}, "$.note"),
    ],
    ids=repr,
)
async def test_discard_requires_notes(psql: Any, operator: Admin, body: Any, path: str) -> None:
    (dlq_id,) = await fill(psql, 1)

    answer = await operator.post(f"{dlq_id}/discard/", body)

    assert paths(answer) == [path]
    if path == "$.notes" and len(str(body.get("notes") or "").strip()) == 0:
        (fault,) = answer.json()["errors"]
        assert fault["message"].startswith("notes are required to discard a dead letter; explain")
    assert (await operator.get(f"{dlq_id}/")).json()["status"] == "pending_review"


async def test_an_edited_tenant_is_refused_with_the_reason(bury: Bury, admin: Admin) -> None:
    letter = await bury(PAYLOAD, type="fetch")
    body = {"notes": "moved", "payload": PAYLOAD | {"tenant_id": 124}}

    answer = await admin.post(f"{letter.dlq_id}/reprocess/", body)

    assert code(answer) == (422, "invalid")
    assert "$.tenant_id cannot be edited: the new job keeps" in answer.json()["detail"]


async def test_patch_keeps_the_rest_of_the_stored_payload(
    flaky: Flaky, bury: Bury, psql: Any, operator: Admin
) -> None:
    letter = await bury({"n": 1, "api_key": "sk_live_0123456789abcdef0123"})
    path = f"{letter.dlq_id}/reprocess/"
    flaky.broken = False

    planned = await operator.post(path, {"patch": {"n": 2}, "dry_run": True})
    both = await operator.post(path, {"patch": {"n": 2}, "payload": {"n": 2}})
    marked = await operator.post(path, {"patch": {"api_key": "[redacted]"}, "dry_run": True})
    made = (await operator.post(path, {"patch": {"n": 2}})).json()

    assert (planned.status_code, planned.json()["new_job_id"]) == (200, None)
    assert both.status_code == 422
    assert paths(marked) == ["$.patch.api_key"]
    stored = await psql.fetchval(
        "select input from forge_jobs where id = $1", UUID(made["new_job_id"])
    )
    assert json.loads(stored) == {"n": 2, "api_key": "sk_live_0123456789abcdef0123"}


async def test_dry_run_reports_what_a_reprocess_would_refuse(
    bury: Bury, psql: Any, operator: Admin
) -> None:
    letter = await bury(PAYLOAD, type="fetch")
    path = f"{letter.dlq_id}/reprocess/"

    answer = await operator.post(path, {"patch": {"connection_id": None}, "dry_run": True})

    assert paths(answer) == ["$.patch.connection_id"]
    assert await events(psql) == []
    assert await psql.fetchval("select status from forge_dead_letters") == "pending_review"
