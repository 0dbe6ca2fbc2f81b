"""The end of a bulk reprocess: it reports the results of its jobs and waits a limited time."""

from typing import Any

import pytest

from forge import Forge, JobContext, RateLimited, Retry, Snooze
from tests.apps import Work
from tests.dead_letters.conftest import Flaky
from tests.dead_letters.letters import fill
from tests.faults.kit.process import until


async def test_the_last_jobs_that_fail_again_are_reported(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    await fill(psql, 3)
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    report = await handle.result(60)

    assert report["failed_again"] == 3
    assert (report["succeeded"], report["unfinished"], report["stopped"]) == (0, 0, None)


async def test_too_many_failures_at_the_end_stop_the_request(
    app: Forge, flaky: Flaky, work: Work, psql: Any
) -> None:
    await fill(psql, 3)
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0, max_failures=2)
    report = await handle.result(60)

    assert "jobs failed again" in report["stopped"]


async def test_jobs_are_awaited_no_longer_than_canaries(app: Forge, work: Work, psql: Any) -> None:
    await fill(psql, 4, "nobody_has_this")
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0, canary_timeout="1s")
    report = await handle.result(60)

    assert (report["reprocessed"], report["unfinished"], report["stopped"]) == (4, 4, None)


async def test_a_cancelled_canary_has_not_completed(app: Forge, work: Work, psql: Any) -> None:
    await fill(psql, 4, "nobody_has_this")
    await work(app)
    handle = await app.dead_letters.reprocess_many(rate=1000, canary=1)
    made = "select id from forge_jobs where retry_of is not null"
    canary = await until(lambda: psql.fetchval(made), 20, "the canary is there")

    await app.handle(canary).cancel()
    report = await handle.result(60)

    assert report["stopped"] == "a canary was cancelled"
    assert (report["reprocessed"], report["cancelled"]) == (1, 1)


@pytest.fixture
def patient(app: Forge) -> set[int]:
    """The type `patient`: its attempts fail with a backoff of a minute, except for these inputs."""
    good: set[int] = set()

    @app.job(name="patient", max_attempts=5)
    async def run(ctx: JobContext, input: dict[str, int]) -> None:
        if input["n"] not in good:
            raise RateLimited("not now")

    return good


async def test_a_failed_attempt_counts_before_its_job_is_final(
    app: Forge, patient: set[int], work: Work, psql: Any
) -> None:
    patient.add(1)
    await fill(psql, 400, "patient")
    await work(app)

    handle = await app.dead_letters.reprocess_many(
        rate=20, canary=0, max_failures=5, canary_timeout="20s"
    )
    report = await handle.result(60)

    assert report["stopped"] == f"{report['failed_again']} jobs failed again"
    assert report["failed_again"] >= 5
    assert (report["succeeded"], report["reprocessed"] <= 100) == (1, True)


async def test_a_canary_whose_attempt_fails_stops_everything_immediately(
    app: Forge, patient: set[int], work: Work, psql: Any
) -> None:
    await fill(psql, 4, "patient")
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=1)
    report = await handle.result(60)

    assert report["stopped"] == "a canary failed again"
    assert (report["reprocessed"], report["failed_again"]) == (1, 1)


async def test_a_job_that_failed_before_it_completed_counts_as_failed(
    app: Forge, work: Work, psql: Any
) -> None:
    @app.job(name="second_try", retry=Retry(max_attempts=3, max_backoff="10ms"))
    async def run(ctx: JobContext, input: dict[str, int]) -> None:
        if ctx.attempt == 1 and input["n"] == 2:
            raise ValueError("once")

    await fill(psql, 3, "second_try")
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    report = await handle.result(60)

    assert (report["succeeded"], report["failed_again"], report["stopped"]) == (2, 1, None)


async def test_snoozed_jobs_do_not_count_as_failed(app: Forge, work: Work, psql: Any) -> None:
    @app.job(name="snoozes")
    async def run(ctx: JobContext, input: dict[str, int]) -> None:
        if ctx.lease == 1:
            raise Snooze("10ms")

    await fill(psql, 3, "snoozes")
    await work(app)

    handle = await app.dead_letters.reprocess_many(rate=1000, canary=0)
    report = await handle.result(60)

    assert (report["succeeded"], report["failed_again"]) == (3, 0)


async def test_a_deleted_canary_is_reported_as_deleted(app: Forge, work: Work, psql: Any) -> None:
    await fill(psql, 4, "nobody_has_this")
    await work(app)
    handle = await app.dead_letters.reprocess_many(rate=1000, canary=1)
    made = "select id from forge_jobs where retry_of is not null"
    canary = await until(lambda: psql.fetchval(made), 20, "the canary is there")

    await psql.execute("delete from forge_jobs where id = $1", canary)
    report = await handle.result(60)

    assert report["stopped"] == "a canary was deleted before its end was seen"
    assert (report["deleted"], report["cancelled"]) == (1, 0)
