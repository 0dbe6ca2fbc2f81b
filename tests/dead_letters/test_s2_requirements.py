"""The error classes and the testing requirements of "Workers and Queues", one test each."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from forge import (
    Forge,
    InvalidPayload,
    JobContext,
    JobFailed,
    PayloadValidator,
    RateLimited,
    Transient,
)
from forge.definitions.error_classification import Classifier
from tests.apps import MakeApp, Work
from tests.faults.kit.process import until
from tests.jobs.payload_rules.ways import PAYLOAD


async def test_a_category_has_five_attempts_and_the_backoff_of_its_class(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(category="ingestion")
    async def fetch(ctx: JobContext, input: dict[str, Any]) -> None:
        raise ValueError("says nothing about itself")

    await work(app)
    handle = await fetch.dispatch(PAYLOAD)
    async for job in handle.updates():
        if job.status == "retry":
            break

    assert (job.max_attempts, job.error_class) == (5, "retryable")
    waits = await psql.fetchval(
        "select scheduled_at - ended_at from forge_jobs join forge_attempts on job_id = id"
    )
    assert timedelta(seconds=1.6) <= waits <= timedelta(seconds=2.4)


RETRY_AFTER = [
    (429, "120", "rate_limited", 120),
    (503, "30", "transient", 30),
    (429, "Wed, 21 Oct 2099 07:28:00 GMT", "rate_limited", 300),
    (503, "Wed, 21 Oct 2015 07:28:00 GMT", "transient", 0),
    (429, "soon", "rate_limited", None),
    (429, "²", "rate_limited", None),
    (500, "", "transient", None),
    (404, "", None, None),
]


@pytest.mark.parametrize(("status", "header", "error_class", "seconds"), RETRY_AFTER)
def test_retry_after_is_honoured(
    status: int, header: str, error_class: str | None, seconds: int | None
) -> None:
    request = httpx.Request("GET", "http://mail.example")
    headers = [(b"retry-after", header.encode("latin-1"))]
    response = httpx.Response(status, headers=headers, request=request)
    with pytest.raises(httpx.HTTPStatusError) as raised:
        response.raise_for_status()

    failure = Classifier().failure(raised.value)

    assert failure.error_class == error_class
    if seconds is None:
        assert failure.retry_after is None
    elif seconds == 300:
        assert failure.retry_after is not None
        assert failure.retry_after > timedelta(days=365)
    else:
        assert failure.retry_after == timedelta(seconds=seconds)


def test_an_apps_classification_overrides_the_defaults_but_not_the_error_itself() -> None:
    class TooFast(Exception):
        pass

    class MyTransient(Transient):
        pass

    classifier = Classifier()
    classifier.add(TooFast, "rate_limited")
    classifier.add(ConnectionError, "non_retryable")
    classifier.add(Exception, "retryable")

    classes = [
        classifier.failure(error).error_class
        for error in (TooFast(), ConnectionRefusedError(), KeyError(), Transient(), MyTransient())
    ]
    assert classes == ["rate_limited", "non_retryable", "retryable", "transient", "transient"]


def test_payload_validation_required_fields_validation() -> None:
    is_valid, errors = PayloadValidator.validate_payload({}, "sync", ["calendar_id"])

    assert not is_valid
    assert len(errors) == 5


@pytest.mark.parametrize(
    "content",
    [
        {"tenant_id": "123"},
        {"tenant_id": True},
        {"tenant_id": 2**63},
        {"correlation_id": "550e8400"},
        {"correlation_id": 5},
        {"idempotency_key": ""},
        {"idempotency_key": "x" * 256},
        {"idempotency_key": 5},
    ],
    ids=str,
)
def test_payload_validation_of_the_types_of_required_fields(content: dict[str, Any]) -> None:
    is_valid, errors = PayloadValidator.validate_payload(PAYLOAD | content, "sync")

    assert (is_valid, len(errors)) == (False, 1)
    assert next(iter(content)) in errors[0]


def test_payload_validation_category_specific_validation() -> None:
    unknown = PayloadValidator.validate_payload(PAYLOAD, "mail")
    lacking = PayloadValidator.validate_payload(PAYLOAD, "documents", ["document_id"])

    assert (unknown[0], "one of ingestion, sync" in unknown[1][0]) == (False, True)
    assert lacking == (False, ["$.document_id is required; pass the id of the object"])


def test_payload_validation_payload_size_limits() -> None:
    large = PAYLOAD | {"numbers": list(range(100_000))}

    is_valid, errors = PayloadValidator.validate_payload(large, "sync")

    assert not is_valid
    assert "the limit is 262,144 bytes" in errors[0]


def test_create_payload_has_the_required_fields_and_the_references() -> None:
    correlation = uuid4()

    payload = PayloadValidator.create_payload(
        tenant_id=1, correlation_id=correlation, idempotency_key="k", connection_id=4
    )

    assert payload == {
        "tenant_id": 1,
        "correlation_id": str(correlation),
        "idempotency_key": "k",
        "connection_id": 4,
    }
    with pytest.raises(InvalidPayload, match="tenant_id"):
        PayloadValidator.create_payload("1", correlation, "k")  # type: ignore[arg-type]


async def test_concurrency_multiple_workers_claiming_different_jobs(
    make_app: MakeApp, work: Work, psql: Any
) -> None:
    ran: Counter[UUID] = Counter()
    apps = [make_app() for _ in range(3)]
    for app in apps:

        @app.job(name="fetch", category="ingestion")
        async def fetch(ctx: JobContext, input: dict[str, Any]) -> None:
            ran[ctx.job_id] += 1

    await apps[0].dispatch_many(
        "fetch", [PAYLOAD | {"idempotency_key": f"k{n}"} for n in range(300)]
    )
    for app in apps:
        await work(app)
    left = "select count(*) from forge_jobs where status <> 'completed'"
    await until(lambda: _is_zero(psql, left), 30, "all are completed")

    jobs = await psql.fetch("select id, attempts, status from forge_jobs")
    assert {(row["attempts"], row["status"]) for row in jobs} == {(1, "completed")}
    # Not the lease: a delayed worker releases prefetched jobs.
    assert ran == Counter(row["id"] for row in jobs)
    assert len(ran) == 300


async def test_dlq_rate_limited_jobs_are_dead_lettered_after_their_last_attempt(
    app: Forge, work: Work
) -> None:
    @app.job(category="sync", max_attempts=1)
    async def pull(ctx: JobContext, input: dict[str, Any]) -> None:
        raise RateLimited("slow down")

    await work(app)
    with pytest.raises(JobFailed):
        await (await pull.dispatch(PAYLOAD)).result(20)

    (item,) = (await app.dead_letters.list(error_class="rate_limited")).items
    assert item.attempt_count == 1


async def _is_zero(psql: Any, counted: str) -> bool:
    return bool(await psql.fetchval(counted) == 0)
