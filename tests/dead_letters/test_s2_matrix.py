"""The compliance matrix of "Workers and Queues", one test per row."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from forge import (
    Forge,
    InvalidPayload,
    JobContext,
    JobFailed,
    NonRetryable,
    PayloadValidator,
    Retry,
    Retryable,
    Transient,
)
from forge.core.payload_rules import CATEGORIES
from forge.core.retry import retry_delay
from forge.definitions.error_classification import ERROR_CLASSES
from tests.apps import MakeApp, Work
from tests.dead_letters.conftest import Bury, Flaky
from tests.jobs.payload_rules.ways import PAYLOAD


@pytest.mark.parametrize("category", CATEGORIES)
def test_minimal_payloads_without_sensitive_content(category: str) -> None:
    clean = PayloadValidator.validate_payload(PAYLOAD, category, ["connection_id"])
    sensitive = [
        PayloadValidator.validate_payload(PAYLOAD | content, category)
        for content in (
            {"password": "hunter2"},
            {"auth": {"access_token": "hunter2"}},
            {"email_body": "hunter2"},
            {"document": {"content": "hunter2"}},
        )
    ]

    assert clean == (True, [])
    assert [is_valid for is_valid, _ in sensitive] == [False] * 4
    assert "hunter2" not in str(sensitive)


@pytest.mark.parametrize("missing", ["tenant_id", "correlation_id", "idempotency_key"])
async def test_required_fields_tenant_id_correlation_id_idempotency_key(
    app: Forge, flaky: Flaky, missing: str
) -> None:
    payload = {name: value for name, value in PAYLOAD.items() if name != missing}

    is_valid, errors = PayloadValidator.validate_payload(payload, "ingestion")

    assert not is_valid
    assert len(errors) == 1
    assert missing in errors[0]
    with pytest.raises(InvalidPayload, match=missing):
        await app.dispatch("fetch", payload)


async def test_payload_versioning(app: Forge, flaky: Flaky) -> None:
    first = await app.dispatch("fetch", PAYLOAD)
    second = await app.dispatch("fetch", PAYLOAD | {"idempotency_key": "b"}, payload_version="2.0")

    assert (await first.get()).payload_version == "1.0"
    assert (await second.get()).payload_version == "2.0"


async def test_at_most_one_concurrent_processing(make_app: MakeApp, work: Work) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()
    runs = 0

    async def handle(ctx: JobContext, input: dict[str, Any]) -> None:
        nonlocal runs
        runs += 1
        began.set()
        await may_end.wait()

    apps = [make_app() for _ in range(3)]
    for app in apps:
        app.job(name="fetch", category="ingestion")(handle)
        await work(app)
    before = await asyncio.gather(*(app.dispatch("fetch", PAYLOAD) for app in apps * 10))
    await asyncio.wait_for(began.wait(), 10)
    during = await asyncio.gather(*(app.dispatch("fetch", PAYLOAD) for app in apps * 10))
    may_end.set()

    handles = before + during
    assert len({handle.id for handle in handles}) == 1
    await handles[0].result(20)
    assert runs == 1
    assert (await handles[0].get()).lease == 1


async def test_advisory_locks_by_idempotency_key(app: Forge, flaky: Flaky, psql: Any) -> None:
    first = await app.dispatch("fetch", PAYLOAD)
    again = await app.dispatch("fetch", PAYLOAD)
    other = await app.dispatch("fetch", PAYLOAD | {"tenant_id": 124})

    assert (again.id, again.deduplicated, other.deduplicated) == (first.id, True, False)
    with pytest.raises(asyncpg.UniqueViolationError):
        await psql.execute(
            "insert into forge_idempotency_keys (tenant_id, key, job_id) values (123, $1, $2)",
            PAYLOAD["idempotency_key"],
            uuid4(),
        )


@pytest.mark.parametrize(
    ("error", "attempts"), [(NonRetryable, 1), (Transient, 2), (Retryable, 2), (ValueError, 2)]
)
async def test_non_retryable_exhausted_retries_go_to_dlq(
    app: Forge, work: Work, error: type[Exception], attempts: int
) -> None:
    @app.job(category="ingestion", retry=Retry(max_attempts=2, backoff="fixed", max_backoff="10ms"))
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None:
        raise error("no luck")

    await work(app)
    handle = await fetch.dispatch(PAYLOAD)
    with pytest.raises(JobFailed, match="dead_letter"):
        await handle.result(20)

    (item,) = (await app.dead_letters.list()).items
    letter = await app.dead_letters.get(item.dlq_id)
    job = await handle.get()
    assert (letter.status, letter.attempt_count) == ("pending_review", attempts)
    assert letter.payload == PAYLOAD
    assert [attempt["error"] for attempt in letter.attempts] == ["no luck"] * attempts
    assert all(a["started_at"] <= a["ended_at"] for a in letter.attempts)
    assert letter.original_created_at == job.created_at
    assert str(letter.correlation_id) == PAYLOAD["correlation_id"]
    assert letter.error_class in ERROR_CLASSES


async def test_dlq_items_viewable_admin_gated(app: Forge, bury: Bury, psql: Any) -> None:
    letter = await bury(PAYLOAD, type="fetch")

    page = await app.dead_letters.list(status="pending_review", category="ingestion")

    (item,) = page.items
    assert page.total_count == 1
    assert (item.dlq_id, item.category, item.job_type) == (letter.dlq_id, "ingestion", "fetch")
    assert item.idempotency_key == PAYLOAD["idempotency_key"]
    assert (item.error_class, item.attempt_count) == ("non_retryable", 1)
    assert item.payload is None
    assert letter.payload == PAYLOAD


async def test_dlq_items_reprocessable(app: Forge, bury: Bury, flaky: Flaky) -> None:
    letter = await bury(PAYLOAD, type="fetch")
    flaky.broken = False

    made = await app.dead_letters.reprocess(letter.dlq_id, notes="Fixed, safe to reprocess")

    key, _, moment = made.new_idempotency_key.rpartition("_retry_")
    assert key == PAYLOAD["idempotency_key"]
    assert float(moment) > 1_735_557_600
    done = await app.handle(made.new_job_id).result(20)
    assert done == PAYLOAD | {"idempotency_key": made.new_idempotency_key}


async def test_reprocessing_preserves_original_payload(app: Forge, bury: Bury) -> None:
    letter = await bury(PAYLOAD, type="fetch")

    await app.dead_letters.reprocess(letter.dlq_id, payload={"connection_id": 7})

    assert (await app.dead_letters.get(letter.dlq_id)).payload == PAYLOAD
    assert (await app.get(letter.job_id)).input == PAYLOAD


async def test_reprocessing_auditable(app: Forge, bury: Bury, psql: Any) -> None:
    letter = await bury(PAYLOAD, type="fetch")

    made = await app.dead_letters.reprocess(letter.dlq_id, notes="fixed", actor="ann")

    requested, success = await psql.fetch(
        "select *, xmin::text as transaction from forge_audit_events order by id"
    )
    assert requested["event"] == "job_dlq_reprocess_requested"
    assert success["event"] == "job_dlq_reprocess_success"
    assert requested["transaction"] != success["transaction"]
    assert requested["created_at"] <= success["created_at"]
    for row in (requested, success):
        assert (row["actor"], row["tenant_id"], row["notes"]) == ("ann", 123, "fixed")
        assert row["dlq_id"] == letter.dlq_id
    assert json.loads(success["detail"])["new_job_id"] == str(made.new_job_id)


ALIGNMENT = {
    "transient": [2, 4, 8, 16, 32],
    "retryable": [2, 4, 8, 16, 32],
    "rate_limited": [60, 120, 240, 480, 960],
}


@pytest.mark.parametrize("error_class", ALIGNMENT)
def test_retry_alignment_with_orchestration(error_class: str) -> None:
    delays = [
        retry_delay(n, declared=None, error_class=error_class, retry_after=None, chance=0.5)
        for n in range(1, 6)
    ]
    spread = [
        retry_delay(3, declared=None, error_class=error_class, retry_after=None, chance=chance)
        for chance in (0.0, 0.999)
    ]

    assert delays == ALIGNMENT[error_class]
    if error_class != "rate_limited":
        assert spread == pytest.approx([8 * 0.8, 8 * 1.2], rel=0.01)
        capped = retry_delay(
            30, declared=None, error_class=error_class, retry_after=None, chance=0.5
        )
        assert capped == 300
    assert tuple(sorted(ERROR_CLASSES)) == tuple(sorted([*ALIGNMENT, "non_retryable"]))
