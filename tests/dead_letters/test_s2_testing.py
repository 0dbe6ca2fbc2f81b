"""The testing requirements of "Workers and Queues" that are not in its matrix, one test each."""

import asyncio
from typing import Any

import pytest

from forge import Forge, JobContext, JobFailed, NonRetryable, PayloadValidator, Transient
from tests.apps import MakeApp, Work
from tests.dead_letters.conftest import Bury, Flaky
from tests.faults.kit.process import until
from tests.jobs.payload_rules.ways import PAYLOAD


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"password": "hunter2"}, "$.password"),
        ({"source": [{"access_token": "hunter2"}]}, "$.source[0].access_token"),
        ({"email_body": "hunter2"}, "$.email_body"),
        ({"document": {"content": "hunter2"}}, "$.document.content"),
        ({"note": "Authorization: Bearer hunter2hunter2"}, "$.note"),
        ({"note": "4111-1111-1111-1111 hunter2"}, "$.note"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_payload_validation_sensitive_content_detection(content: Any, path: str) -> None:
    is_valid, errors = PayloadValidator.validate_payload(PAYLOAD | content, "ingestion")

    assert (is_valid, len(errors)) == (False, 1)
    assert errors[0].startswith(f"{path} ")
    assert "hunter2" not in errors[0]


async def test_concurrency_skip_locked_claim_behavior(app: Forge, work: Work, psql: Any) -> None:
    @app.job
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None: ...

    locked, *others = [await fetch.dispatch({"n": n}) for n in range(4)]
    async with psql.transaction():
        await psql.fetch("select from forge_jobs where id = $1 for update", locked.id)
        await work(app)

        for handle in others:
            await handle.result(20)
        assert (await locked.get()).status == "pending"

    await locked.result(20)


async def test_concurrency_idempotency_key_uniqueness(make_app: MakeApp, psql: Any) -> None:
    apps = [make_app() for _ in range(4)]
    for app in apps:

        @app.job(name="fetch", category="ingestion")
        async def fetch(ctx: JobContext, input: dict[str, Any]) -> None: ...

    handles = await asyncio.gather(*(app.dispatch("fetch", PAYLOAD) for app in apps * 10))

    assert len({handle.id for handle in handles}) == 1
    assert sum(not handle.deduplicated for handle in handles) == 1
    assert await psql.fetchval("select count(*) from forge_jobs") == 1


async def test_concurrency_same_job_not_claimed_twice(make_app: MakeApp, work: Work) -> None:
    gate, starts = asyncio.Event(), []

    async def hold(ctx: JobContext, input: dict[str, Any]) -> None:
        starts.append(input["n"])
        await gate.wait()

    apps = [make_app(max_concurrent=2) for _ in range(4)]
    for app in apps:
        app.job(name="hold")(hold)
    handles = [await apps[0].dispatch("hold", {"n": n}) for n in range(8)]
    for app in apps:
        await work(app)

    # Eight jobs for eight slots: a job claimed twice would leave another without a slot.
    await until(lambda: len(starts) == 8, 30, "all run at once")
    assert sorted(starts) == list(range(8))
    gate.set()
    for handle in handles:
        await handle.result(20)
    assert {(await handle.get()).lease for handle in handles} == {1}
    assert len(starts) == 8


async def test_dlq_automatic_dlq_routing_on_non_retryable(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(category="ingestion")
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None:
        raise NonRetryable("Validation error: invalid payload")

    await work(app)
    with pytest.raises(JobFailed):
        await (await fetch.dispatch(PAYLOAD)).result(20)

    (item,) = (await app.dead_letters.list()).items
    assert (item.status, item.error_class) == ("pending_review", "non_retryable")
    assert (item.attempt_count, item.error_message) == (1, "Validation error: invalid payload")
    in_one_transaction = await psql.fetchval(
        "select job.xmin = letter.xmin from forge_jobs as job "
        "join forge_dead_letters as letter on job_id = id"
    )
    assert in_one_transaction


async def test_dlq_automatic_dlq_routing_on_max_attempts(app: Forge, work: Work, psql: Any) -> None:
    @app.job(category="ingestion")
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None:
        raise Transient(f"attempt {ctx.attempt}", retry_after="10ms")

    await work(app)
    with pytest.raises(JobFailed):
        await (await fetch.dispatch(PAYLOAD)).result(30)

    (item,) = (await app.dead_letters.list()).items
    letter = await app.dead_letters.get(item.dlq_id)
    assert (letter.attempt_count, letter.error_class) == (5, "transient")
    assert [attempt["error"] for attempt in letter.attempts] == [
        f"attempt {number}" for number in range(1, 6)
    ]
    assert [attempt["outcome"] for attempt in letter.attempts] == ["retry"] * 4 + ["dead_letter"]


async def test_dlq_reprocessing_creates_new_job(app: Forge, bury: Bury, flaky: Flaky) -> None:
    letter = await bury(PAYLOAD, type="fetch")
    flaky.broken = False

    made = await app.dead_letters.reprocess(letter.dlq_id)

    assert made.new_job_id != letter.job_id
    await app.handle(made.new_job_id).result(20)
    new, old = await app.get(made.new_job_id), await app.get(letter.job_id)
    assert (new.retry_of, new.status, new.attempts) == (old.id, "completed", 1)
    assert (old.status, old.input) == ("dead_letter", PAYLOAD)


async def test_dlq_reprocessing_audit_trail(app: Forge, bury: Bury, psql: Any) -> None:
    letter = await bury(PAYLOAD, type="fetch")

    await app.dead_letters.reprocess(letter.dlq_id, notes="fixed", actor="ann")

    audited = await psql.fetch(
        "select event, actor, notes, tenant_id, job_id, dlq_id, created_at "
        "from forge_audit_events order by id"
    )
    assert [row["event"] for row in audited] == [
        "job_dlq_reprocess_requested",
        "job_dlq_reprocess_success",
    ]
    for row in audited:
        assert (row["actor"], row["notes"], row["tenant_id"]) == ("ann", "fixed", 123)
        assert (row["job_id"], row["dlq_id"]) == (letter.job_id, letter.dlq_id)
        assert row["created_at"] > letter.created_at
