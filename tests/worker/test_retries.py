"""Failed attempts: when they are tried again, what is written down, and how they end."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

import forge
from forge import (
    Forge,
    InvalidValue,
    JobContext,
    JobFailed,
    JobRecord,
    NonRetryable,
    RateLimited,
    Retry,
    Retryable,
    Transient,
)
from tests.apps import Work
from tests.worker import handlers


@pytest.mark.parametrize(
    ("retry", "raised", "least", "most"),
    [
        (None, ValueError("x"), 1, 1.1),
        (Retry(backoff="fixed"), ValueError("x"), 1, 1.1),
        (Retry(backoff="linear"), ValueError("x"), 1, 1.1),
        (Retry(backoff="exponential", max_backoff="500ms"), ValueError("x"), 0.5, 0.55),
        (None, Transient("x"), 1.6, 2.4),
        (None, Retryable("x"), 1.6, 2.4),
        (Retry(backoff="fixed"), Transient("x"), 1, 1.1),
        (None, RateLimited("x"), 60, 60),
        (Retry(backoff="fixed"), RateLimited("x"), 60, 60),
        (None, RateLimited("x", retry_after="7m"), 420, 420),
        (None, Transient("x", retry_after="90s"), 90, 90),
        (None, TimeoutError("x"), 1.6, 2.4),
        (None, ConnectionResetError("x"), 1.6, 2.4),
    ],
)
async def test_a_failed_attempt_waits_as_long_as_its_error_and_its_type_say(
    app: Forge, work: Work, retry: Retry | None, raised: Exception, least: float, most: float
) -> None:
    @app.job(retry=retry)
    async def fail(ctx: JobContext) -> None:
        raise raised

    await work(app)

    job = await _failed_once(await fail.dispatch())

    assert least <= await _waits(app, job) <= most
    assert job.error_class == getattr(raised, "error_class", _transient_or_none(raised))


@pytest.mark.parametrize(
    ("status", "headers", "error_class", "least", "most"),
    [
        (429, {}, "rate_limited", 60, 60),
        (429, {"retry-after": "33"}, "rate_limited", 33, 33),
        (503, {"retry-after": "44"}, "transient", 44, 44),
        (500, {}, "transient", 1.6, 2.4),
        (404, {}, None, 1, 1.1),
    ],
)
async def test_an_http_answer_is_classified_and_its_retry_after_obeyed(
    app: Forge,
    work: Work,
    status: int,
    headers: dict[str, str],
    error_class: str | None,
    least: float,
    most: float,
) -> None:
    @app.job
    async def call(ctx: JobContext) -> None:
        request = httpx.Request("GET", "http://service.test/")
        httpx.Response(status, headers=headers, request=request).raise_for_status()

    await work(app)

    job = await _failed_once(await call.dispatch())

    assert job.error_class == error_class
    assert least <= await _waits(app, job) <= most


async def test_an_app_says_how_errors_of_others_are_to_be_retried(app: Forge, work: Work) -> None:
    @app.job
    async def look(ctx: JobContext, input: dict) -> None:
        raise {"key": KeyError, "lookup": LookupError, "value": ValueError}[input["what"]]("x")

    app.classify(LookupError, "non_retryable")
    app.classify(ValueError, "rate_limited")
    await work(app)

    for what in ("key", "lookup"):  # a subclass is its parent's kind
        with pytest.raises(JobFailed):
            await (await look.dispatch({"what": what})).result(10)
    limited = await _failed_once(await look.dispatch({"what": "value"}))
    assert await _waits(app, limited) == 60


def test_a_class_that_does_not_exist_is_refused(app: Forge) -> None:
    with pytest.raises(InvalidValue, match="transient, retryable, rate_limited, non_retryable"):
        app.classify(ValueError, "sometimes")  # type: ignore[arg-type]


async def test_a_job_runs_as_often_as_it_may_and_knows_which_time_it_is(
    app: Forge, work: Work
) -> None:
    seen: list[tuple[int, bool, bool]] = []

    @app.job(retry=Retry(max_attempts=3, max_backoff="10ms"))
    async def fail(ctx: JobContext) -> None:
        seen.append((ctx.attempt, ctx.is_retry, ctx.is_last_attempt))
        raise ValueError(f"attempt {ctx.attempt}")

    await work(app)
    handle = await fail.dispatch()

    with pytest.raises(JobFailed, match="dead_letter: attempt 3"):
        await handle.result(10)
    assert seen == [(1, False, False), (2, True, False), (3, True, True)]
    job = await handle.get()
    assert (job.attempts, job.lease, job.crashes) == (3, 3, 0)


async def test_a_later_attempt_that_succeeds_completes_the_job(app: Forge, work: Work) -> None:
    @app.job(retry=Retry(max_backoff="10ms"))
    async def flaky(ctx: JobContext) -> int:
        if not ctx.is_retry:
            raise ValueError("not yet")
        return ctx.attempt

    await work(app)

    assert await (await flaky.dispatch()).result(10) == 2


async def test_an_error_that_cannot_be_mended_is_not_tried_again(app: Forge, work: Work) -> None:
    @app.job
    async def fail(ctx: JobContext) -> None:
        raise NonRetryable("there is no such customer")

    await work(app)
    handle = await fail.dispatch()

    with pytest.raises(JobFailed, match="dead_letter: there is no such customer"):
        await handle.result(10)
    job = await handle.get()
    assert (job.attempts, job.error_class) == (1, "non_retryable")
    assert job.failed_at is not None


@pytest.mark.parametrize(
    ("how", "status", "error_class"),
    [
        ("plainly", "retry", None),
        ("for good", "dead_letter", "non_retryable"),
        ("limited", "retry", "rate_limited"),
        ("exit", "retry", None),
        ("wordlessly", "retry", "transient"),
        ("snooze", "pending", None),
    ],
)
async def test_an_error_in_a_child_process_means_the_same(
    app: Forge, work: Work, how: str, status: str, error_class: str | None
) -> None:
    app.register(handlers.fail_as_told)
    await work(app)
    handle = await handlers.fail_as_told.dispatch({"how": how})

    async for job in handle.updates():
        if job.lease and job.status not in ("running", "claimed"):
            break

    assert (job.status, job.error_class) == (status, error_class)
    if how == "limited":
        assert await _waits(app, job) == 420
    if how == "snooze":
        assert await _waits(app, job) == pytest.approx(3600, abs=30)


def test_giving_max_attempts_twice_is_an_error() -> None:
    with pytest.raises(InvalidValue, match="max_attempts is given twice"):

        @forge.job(max_attempts=4, retry=Retry(max_attempts=5))
        async def fail(ctx: Any) -> None: ...


@pytest.mark.parametrize(
    ("attributes", "attempts"),
    [
        ({}, 3),
        ({"max_attempts": 7}, 7),
        ({"retry": Retry(max_attempts=4)}, 4),
        ({"retry": Retry(), "max_attempts": 6}, 6),
        ({"category": "sync"}, 5),
    ],
)
def test_how_often_a_job_is_tried_comes_from_one_place(
    attributes: dict[str, Any], attempts: int
) -> None:
    @forge.job(**attributes)
    async def fail(ctx: Any) -> None: ...

    assert fail.job_type.max_attempts == attempts


def _transient_or_none(raised: Exception) -> str | None:
    return "transient" if isinstance(raised, TimeoutError | ConnectionError) else None


async def _failed_once(handle: forge.JobHandle) -> JobRecord:
    async for job in handle.updates():
        if job.status == "retry":
            return job
    raise AssertionError("it never waited for a retry")


async def _waits(app: Forge, job: JobRecord) -> float:
    """Return the seconds from the end of the attempt until the next, by the database's clock."""
    database = await (await app.session()).database()
    async with database.acquire() as connection:
        waits: timedelta = await connection.fetchval(
            "select j.scheduled_at - coalesce(a.ended_at, now()) from forge_jobs j "
            "left join forge_attempts a on a.job_id = j.id where j.id = $1",
            job.id,
        )
    return waits.total_seconds()
