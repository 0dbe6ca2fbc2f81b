"""What a failed attempt leaves behind: its record, its error, its dead letter."""

from typing import Any

import pytest

from forge import Forge, JobContext, JobFailed, Retry, Retryable, Transient
from tests.apps import Work


async def test_a_job_that_wants_no_dead_letter_ends_as_failed(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(dead_letter=False, max_attempts=1)
    async def fail(ctx: JobContext) -> None:
        raise ValueError("no")

    await work(app)

    with pytest.raises(JobFailed, match="ended as failed"):
        await (await fail.dispatch()).result(10)
    assert await psql.fetchval("select count(*) from forge_dead_letters") == 0
    assert await psql.fetchval("select outcome from forge_attempts") == "failed"


async def test_every_failed_attempt_leaves_its_record(app: Forge, work: Work, psql: Any) -> None:
    @app.job(retry=Retry(max_attempts=2, max_backoff="10ms"))
    async def fail(ctx: JobContext) -> None:
        raise Transient(f"attempt {ctx.attempt}")

    worker = await work(app)
    handle = await fail.dispatch(tenant_id=5)
    with pytest.raises(JobFailed):
        await handle.result(10)

    first, second = await psql.fetch("select * from forge_attempts order by lease")
    assert (first["attempt"], first["outcome"], first["error"]) == (1, "retry", "attempt 1")
    assert (second["attempt"], second["outcome"]) == (2, "dead_letter")
    for record in (first, second):
        assert record["worker_id"] == worker.registration.id
        assert (record["tenant_id"], record["error_class"]) == (5, "transient")
        assert record["exception"] == "forge.Transient"
        assert "raise Transient(" in record["trace"]
        assert record["started_at"] <= record["ended_at"]


async def test_the_job_keeps_500_characters_of_its_error_and_the_attempt_all_of_it(
    app: Forge, work: Work, psql: Any
) -> None:
    message = "ü" * 700

    @app.job(max_attempts=1)
    async def fail(ctx: JobContext) -> None:
        raise ValueError(message)

    await work(app)
    handle = await fail.dispatch()
    with pytest.raises(JobFailed):
        await handle.result(10)

    assert (await handle.get()).last_error == message[:500]
    assert await psql.fetchval("select error_message from forge_dead_letters") == message[:500]
    assert await psql.fetchval("select error from forge_attempts") == message
    assert message in await psql.fetchval("select trace from forge_attempts")


async def test_a_dead_letter_holds_all_that_a_person_needs(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(retry=Retry(max_attempts=2, max_backoff="10ms"), queue="mail", priority="high")
    async def fail(ctx: JobContext, input: dict) -> None:
        raise Retryable(f"attempt {ctx.attempt}")

    await work(app)
    handle = await fail.dispatch(
        {"to": "ann"},
        tenant_id=5,
        correlation_id="0af76519-16cd-43dd-8448-eb211c80319c",
        idempotency_key="k1",
    )
    with pytest.raises(JobFailed):
        await handle.result(10)

    letter = dict(await psql.fetchrow("select *, payload::text as text from forge_dead_letters"))
    job = await handle.get()
    expected = {
        "job_id": handle.id,
        "job_type": "fail",
        "queue": "mail",
        "priority": 75,
        "tenant_id": 5,
        "correlation_id": job.correlation_id,
        "idempotency_key": "k1",
        "text": '{"to": "ann"}',
        "payload_version": "1.0",
        "error_class": "retryable",
        "exception": "forge.Retryable",
        "error_message": "attempt 2",
        "attempt_count": 2,
        "crashes": 0,
        "original_created_at": job.created_at,
        "status": "pending_review",
    }
    assert {name: letter[name] for name in expected} == expected
    assert letter["fingerprint"]


async def test_a_dead_letter_tells_every_attempt_in_order(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(retry=Retry(max_attempts=3, max_backoff="10ms"))
    async def fail(ctx: JobContext) -> None:
        raise ValueError(f"attempt {ctx.attempt}")

    await work(app)
    with pytest.raises(JobFailed):
        await (await fail.dispatch()).result(10)

    recorded = await psql.fetch(
        "select attempt ->> 'attempt' as number, attempt ->> 'error' as error, "
        "(attempt ->> 'started_at')::timestamptz <= (attempt ->> 'ended_at')::timestamptz as timed "
        "from forge_dead_letters, jsonb_array_elements(attempts) as attempt"
    )
    assert [tuple(row) for row in recorded] == [
        ("1", "attempt 1", True),
        ("2", "attempt 2", True),
        ("3", "attempt 3", True),
    ]


async def test_failures_of_one_cause_share_a_fingerprint_and_others_do_not(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(max_attempts=1)
    async def fail(ctx: JobContext, input: dict) -> None:
        raise ValueError(f"for {input['n']}")

    @app.job(max_attempts=1)
    async def fail_elsewhere(ctx: JobContext) -> None:
        raise ValueError("for 1")

    await work(app)
    handles = [await fail.dispatch({"n": n}) for n in (1, 2)] + [await fail_elsewhere.dispatch()]
    for handle in handles:
        with pytest.raises(JobFailed):
            await handle.result(10)

    prints = [
        await psql.fetchval("select fingerprint from forge_dead_letters where job_id = $1", h.id)
        for h in handles
    ]
    assert prints[0] == prints[1] != prints[2]


async def test_an_error_whose_text_postgresql_cannot_hold_is_recorded_all_the_same(
    app: Forge, work: Work
) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @app.job(max_attempts=1)
    async def fail(ctx: JobContext, input: dict) -> None:
        raise [ValueError("nul \0 and \ud800"), Odd()][input["n"]]

    await work(app)

    with pytest.raises(JobFailed, match=r"nul \\0 and \\ud800"):
        await (await fail.dispatch({"n": 0})).result(10)
    with pytest.raises(JobFailed, match=r"str\(\) raised RuntimeError"):
        await (await fail.dispatch({"n": 1})).result(10)
